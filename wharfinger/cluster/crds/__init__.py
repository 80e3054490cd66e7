"""Custom resource definitions of charts: the check for unsafe upgrades, applying definitions, and restoring deleted ones.

May import ``health`` and the folders below it in the layers of pyproject.toml.
"""
