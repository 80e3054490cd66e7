"""The fetching of sources: local working trees, git repositories, OCI registries, and Helm repositories.

May import ``store``.
"""
