"""JSON values with their types, strict reading within limits, and values that are kept packed.

Imports ``errors`` only.
"""
