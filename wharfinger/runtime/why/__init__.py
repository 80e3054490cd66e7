"""Explanations of a package's state: the causes from the package to the root, and what to do about the root.

Pure functions over snapshots. May import ``scheduler`` and below.
"""
