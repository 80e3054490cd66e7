"""The commands for package authors: ``wharfinger hook`` and ``wharfinger package lint``. They need no cluster.

This folder may import all other folders of ``hooks``.
"""
