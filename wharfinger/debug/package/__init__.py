"""The commands about one package of a running daemon: its description, Events, log, values, and what an apply would change.

This folder may import ``listing`` and the folders below it in the layers of pyproject.toml.
"""
