"""Changes of applied objects by other writers: comparison by field ownership, ignored fields, corrections, and fights.

This folder may import ``records`` and the folders below it in the layers of pyproject.toml.
"""
