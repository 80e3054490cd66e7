"""The daemon's admission server: a webhook that judges Applications, Modules and PackageRepositories before they are stored, and
the webhooks that are hooks of packages.

The code in this folder reads the state of the runtime (``core``), and does not change it. It may import ``controllers`` and
the folders below it in the layers of pyproject.toml. Only a daemon with ``--admission`` imports ``server``, because ``server``
needs the library of the extra ``wharfinger[admission]``.
"""
