"""Rendering of charts and values to manifests.

It runs Helm in a child process, adds templates to those of a chart, overrides resources, and caches the results.

May import ``store`` and the folders below it in the layers of pyproject.toml.
"""
