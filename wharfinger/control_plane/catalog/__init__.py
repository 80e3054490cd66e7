"""The catalog of served kinds: the table of built-in kinds with their columns, the kinds that CustomResourceDefinitions
define, and the conversion of objects between served versions.

This package may import ``api`` and everything below it. It reads no storage.
"""
