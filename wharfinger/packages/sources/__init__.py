"""The sources of packages, each opened as a registry: registries with their mirrors, image layouts, folders, Helm repositories,
git repositories and archives.

This folder may import ``trust`` and the folders below it in the layers of pyproject.toml.
"""
