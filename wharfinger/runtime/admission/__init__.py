"""The admission of the daemon's own resources: a webhook that judges Applications, Modules and PackageRepositories before they
are stored.

It reads ``core``, and changes nothing in it. May import ``controllers`` and below. Only a daemon with ``--admission`` loads
it, because it needs a library of the extra ``wharfinger[admission]``.
"""
