"""The events of hooks: changes of watched objects, which jq may filter and snapshots keep, and ticks of schedules. Both reach
hooks as binding contexts.

May import ``containment`` and the folders below it in the layers of pyproject.toml.
"""
