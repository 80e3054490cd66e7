"""Types and values of expressions: Python's own values where CEL means the same, classes for the rest, objects read by the
types of their schema, and the operations on all of them.

The lowest room of ``cel``.
"""
