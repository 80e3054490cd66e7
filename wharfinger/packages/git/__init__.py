"""Git repositories: runs of the ``git`` program, and reads from remote repositories.

This folder may import ``files`` and the folders below it in the layers of pyproject.toml.
"""
