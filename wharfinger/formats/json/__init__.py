"""JSON values with their types, strict reading within limits, and values that are stored compressed.

Of the rest of ``formats``, it imports ``errors`` only.
"""
