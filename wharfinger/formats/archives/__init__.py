"""Untrusted tar archives: read within limits, unpacked to a tree that they cannot escape.

May import ``json``.
"""
