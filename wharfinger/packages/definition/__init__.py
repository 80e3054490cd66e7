"""The files with which a package describes itself.

These are package.yaml, the layouts of folders, requirements, conversions of settings, and definitions of custom resources.

May import ``charts`` and the folders below it in the layers of pyproject.toml.
"""
