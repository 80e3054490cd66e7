"""From a chart and values to manifests: Helm in a child process, what is added to its templates, overrides of resources, and
the cache.

May import ``store`` and below.
"""
