"""Tools for package authors: ``hook run``, ``hook config``, ``hook context`` and ``package lint``, without a cluster.

The highest folder; it may import all others.
"""
