"""The catalog of served kinds: the table of built-in kinds with their columns, the kinds that CustomResourceDefinitions
define, and the conversion of objects between served versions.

May import ``api`` and everything below it; it reads no storage.
"""
