"""Metrics that hooks publish: operations from their files, the store of samples, and measurements of the runs.

This folder may import ``running`` and the folders below it in the layers of pyproject.toml.
"""
