"""Types and values of expressions, and the operations on them.

Python's own values are used if they mean the same in CEL, and classes for the rest; objects are read by the types of their
schema. The lowest folder of ``cel``.
"""
