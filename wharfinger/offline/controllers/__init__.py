"""The controllers of an offline run. Each controller turns the objects of some kinds, such as HelmReleases, into manifests.

This folder may import ``building`` and the folders below it in the layers of pyproject.toml.
"""
