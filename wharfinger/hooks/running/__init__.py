"""Running hooks and reading their results.

The modules find hooks, read their configurations, run them as processes with files and logs, read their results, apply their
patches of objects and values, and keep the events that wait for each hook in an inbox.

This folder may import ``watching`` and the folders below it in the layers of pyproject.toml.
"""
