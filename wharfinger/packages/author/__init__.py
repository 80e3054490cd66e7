"""``package check``: the check of a package's folder before it is pushed.

This folder may import ``settings`` and the folders below it in the layers of pyproject.toml.
"""
