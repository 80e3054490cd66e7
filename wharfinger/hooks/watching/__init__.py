"""The events of hooks: changes of watched objects, and ticks of schedules. Both reach hooks as binding contexts.

This folder also has the jq filters for watched objects, and the snapshots of these objects.

This folder may import ``containment`` and the folders below it in the layers of pyproject.toml.
"""
