"""The sources of packages, each opened as a registry: registries with their mirrors, layouts, folders, Helm repositories, git
repositories and archives.

May import ``registry`` and the folders below it in the layers of pyproject.toml.
"""
