"""Helm charts as files: Chart.yaml, .helmignore, archives.

This folder may import ``files`` and the folders below it in the layers of pyproject.toml.
"""
