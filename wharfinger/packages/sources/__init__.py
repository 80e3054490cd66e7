"""The sources of packages, each opened as a registry: registries with their mirrors, layouts, folders, Helm repositories and git.

May import ``registry`` and below.
"""
