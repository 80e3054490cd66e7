"""Custom resource definitions of charts: the check for unsafe upgrades, applying definitions, and restoring deleted ones.

This folder may import ``health`` and the folders below it in the layers of pyproject.toml.
"""
