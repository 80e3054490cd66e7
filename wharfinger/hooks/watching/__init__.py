"""The events of hooks: objects and times, watched, filtered by jq, kept as snapshots and passed on as contexts.

May import ``containment`` and the folders below it in the layers of pyproject.toml.
"""
