"""The checks of a built tree: by the rules of an API server, and for references to objects that do not exist.

This folder may import ``orchestrator`` and the folders below it in the layers of pyproject.toml.
"""
