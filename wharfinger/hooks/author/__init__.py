"""Tools for package authors: ``hook run``, ``hook config``, ``hook context`` and ``package lint``, without a cluster.

May import all other folders of ``hooks``.
"""
