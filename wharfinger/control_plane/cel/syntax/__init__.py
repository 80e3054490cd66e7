"""The syntax of expressions: tokens, nodes, macros, the parser, and syntax errors.

This package may import ``values``.
"""
