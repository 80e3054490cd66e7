"""Types and values of expressions, and the operations on them.

Values have Python's own types if these have the same meaning in CEL; otherwise, they are instances of classes of this package.
Objects are converted according to their schema. This package imports no other package of ``cel``.
"""
