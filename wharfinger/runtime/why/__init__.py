"""Explanations of a package's state: the chain of causes from the package to the root cause, and the remedy for the root cause.

Pure functions over snapshots. This folder may import ``scheduler`` and the folders below it in the layers of pyproject.toml.
"""
