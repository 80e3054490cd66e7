"""Untrusted tar archives: read within limits, unpacked to a tree that they cannot escape.

This folder may import ``json``.
"""
