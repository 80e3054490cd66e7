"""The admission of the daemon's own resources: a webhook that judges Applications, Modules and PackageRepositories before they
are stored.

It reads ``core``, and changes nothing in it. May import ``controllers`` and the folders below it in the layers of pyproject.toml.
Only a daemon with ``--admission`` loads this folder, because it needs a library of the extra ``wharfinger[admission]``.
"""
