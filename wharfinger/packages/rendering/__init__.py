"""Rendering of charts and values to manifests.

This is Helm in a child process, the templates that are added to a chart's own, overrides of resources, and the cache.

May import ``store`` and below.
"""
