"""The syntax of expressions: tokens, nodes, macros, the parser, and syntax errors.

May import ``values``.
"""
