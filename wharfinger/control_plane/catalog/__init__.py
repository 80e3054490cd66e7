"""Which kinds are served at this moment: the table of built-in kinds with their columns, the kinds made of
CustomResourceDefinitions, and how objects convert between served versions.

May import ``api`` and everything below it; it reads no storage.
"""
