"""The webhooks of hooks: the objects that register them with API servers, the answers of hooks, and chains of conversions.

Pure. This folder may import ``running`` and the folders below it in the layers of pyproject.toml.
"""
