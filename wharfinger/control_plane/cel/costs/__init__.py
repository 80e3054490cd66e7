"""The cost of expressions, estimated by sizes before evaluation and counted by calls during evaluation.

May import ``checking``, ``syntax`` and ``values``.
"""
