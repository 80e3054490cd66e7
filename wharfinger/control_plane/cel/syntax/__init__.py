"""The syntax of expressions: tokens, nodes, macros, the parser, and the wording of syntax errors.

May import ``values``.
"""
