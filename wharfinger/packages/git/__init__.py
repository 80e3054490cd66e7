"""Git repositories: runs of the ``git`` program, and reads from remote repositories.

May import ``files`` and the folders below it in the layers of pyproject.toml.
"""
