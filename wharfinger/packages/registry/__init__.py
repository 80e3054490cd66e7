"""Registries of packages: OCI registries, image layouts and package folders, with addresses, logins, manifests and pushing.

This folder may import ``definition`` and the folders below it in the layers of pyproject.toml.
"""
