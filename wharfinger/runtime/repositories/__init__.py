"""PackageRepositories: scans of their packages, their status, and the index of each package.

This folder may import ``core`` and the folders below it in the layers of pyproject.toml.
"""
