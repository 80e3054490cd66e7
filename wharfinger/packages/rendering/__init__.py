"""Rendering of charts and values to manifests.

It has Helm in a child process, templates added to a chart's own, overrides of resources, and the cache.

May import ``store`` and below.
"""
