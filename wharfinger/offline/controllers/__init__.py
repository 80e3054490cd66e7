"""The controllers of an offline run. Each controller makes the manifests of the objects of some kinds.

This folder may import ``building`` and the folders below it in the layers of pyproject.toml.
"""
