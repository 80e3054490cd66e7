"""The reading of a tree of manifests: which files count, what they declare and where, and what builds them.

May import ``store``.
"""
