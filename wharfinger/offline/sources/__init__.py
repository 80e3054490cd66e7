"""Fetchers of sources (local working trees, git repositories, OCI registries, Helm repositories), and the cache folder.

May import ``store``.
"""
