"""The fetching of sources: local working trees, git repositories, OCI registries, and Helm repositories; the cache
folder that they share with results.

May import ``store``.
"""
