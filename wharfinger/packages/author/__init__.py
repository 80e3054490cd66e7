"""``package check``: the check of a package's folder before it is pushed.

May import ``settings`` and the folders below it in the layers of pyproject.toml.
"""
