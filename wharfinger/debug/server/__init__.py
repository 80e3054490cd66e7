"""The daemon's side: the debug socket with its routes, and the listener for metrics.

This folder may import ``encoding`` and the folders below it in the layers of pyproject.toml.
"""
