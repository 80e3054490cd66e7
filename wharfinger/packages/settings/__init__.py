"""Settings and values: their merging, their check against schemas and rules, and the report of all problems.

May import ``kustomizing`` and the folders below it in the layers of pyproject.toml.
"""
