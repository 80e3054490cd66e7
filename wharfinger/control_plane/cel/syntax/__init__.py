"""From the text of an expression to its tree: tokens, nodes, macros, the parser, and the wording of syntax errors.

May import ``values``.
"""
