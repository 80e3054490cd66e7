"""The cost of expressions: estimated from sizes before evaluation, and counted during evaluation.

May import ``checking``, ``syntax`` and ``values``.
"""
