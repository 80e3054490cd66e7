"""Types and values of expressions, and the operations on them.

Values are Python's own if they have the same meaning in CEL, and instances of classes otherwise. Objects are read by the types of
their schema. The lowest folder of ``cel``.
"""
