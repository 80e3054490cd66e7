"""Rendering of charts and values to manifests.

The code here runs Helm or the chart engine in child processes, adds templates to those of a chart, overrides resources, and
caches the results.

This folder may import ``store`` and the folders below it in the layers of pyproject.toml.
"""
