"""The definition of a package, as its files state it.

It consists of package.yaml, the layout of the folder, requirements, conversions of settings, and CRDs.

This folder may import ``charts`` and the folders below it in the layers of pyproject.toml.
"""
