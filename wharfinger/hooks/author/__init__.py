"""Tools for package authors: ``hook run``, ``hook config``, ``hook context`` and ``package lint``, without a cluster.

This is the highest folder of ``hooks``, so it may import all others.
"""
