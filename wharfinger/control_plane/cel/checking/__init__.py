"""What each part of an expression is: the table of overloads, the type checker, and constants that can be judged before
anything runs.

May import ``syntax`` and ``values``.
"""
