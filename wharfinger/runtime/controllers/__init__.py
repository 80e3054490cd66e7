"""The controllers: they turn custom resources, a modules directory and a ConfigMap into the wanted state for the core, hold
back changes that would break dependents, and take over releases that an earlier process applied.

They may import ``core`` and the folders below it in the layers of pyproject.toml.
"""
