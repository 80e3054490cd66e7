"""Settings and values: their merging, their check against schemas and rules, and the report of all problems.

This folder may import ``kustomizing`` and the folders below it in the layers of pyproject.toml.
"""
