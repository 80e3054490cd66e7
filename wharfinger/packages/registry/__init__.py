"""The sources of packages: OCI registries, layouts and folders, addresses, logins, manifests and pushing.

May import ``definition`` and below.
"""
