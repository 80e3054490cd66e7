"""Fetchers of sources (git repositories, OCI registries, Helm repositories), and the cache folder.

Of the other folders of ``wharfinger/offline``, it may import only ``store``.
"""
