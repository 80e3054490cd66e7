"""The command ``wharfinger plan``, which computes from files which packages would be on, and in which order they would run. It
needs no cluster, and uses the daemon's fixpoint engine.

This folder may import ``inspection`` and the folders below it in the layers of pyproject.toml.
"""
