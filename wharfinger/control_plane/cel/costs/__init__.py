"""The cost of expressions: estimated from sizes before evaluation, and counted during evaluation.

This package may import ``checking``, ``syntax`` and ``values``.
"""
