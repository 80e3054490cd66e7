"""JSON values with their types, strict reading within limits, and values that are stored compressed.

Imports ``errors`` only.
"""
