"""The type checker: the table of overloads, the inference of types, and the check of constants before evaluation.

This package may import ``syntax`` and ``values``.
"""
