"""Writing and deleting objects: server-side apply, the operations for a row of the desired table, pruning, and reports of
work that no user requested.

This folder may import ``drift`` and the folders below it in the layers of pyproject.toml.
"""
