"""JSON values with their types, strict reading within limits, and values that are stored compressed.

The only other part of ``formats`` that this folder imports is ``errors``.
"""
