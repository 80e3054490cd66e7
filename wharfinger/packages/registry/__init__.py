"""The sources of packages: OCI registries, layouts and folders, addresses, logins, manifests and pushing.

May import ``definition`` and the folders below it in the layers of pyproject.toml.
"""
