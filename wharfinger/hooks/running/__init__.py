"""Running hooks and reading their results.

The modules find hooks, read their configurations, run the process with its files and logs, read results, apply patches of objects
and values, and keep the inbox of events.

May import ``watching`` and the folders below it in the layers of pyproject.toml.
"""
