"""Profiles of the running daemon: a thread that samples stacks, and the formats that other tools read.

This folder may import ``printing`` and the folders below it in the layers of pyproject.toml.
"""
