"""The controllers: they turn custom resources, a modules directory and a ConfigMap into the wanted state for the core, hold
back changes that would break dependents, and take over releases that an earlier process applied.

They may import all folders that are below ``controllers`` in the layers of pyproject.toml, such as ``core``.
"""
