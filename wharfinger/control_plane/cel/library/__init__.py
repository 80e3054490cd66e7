"""The implementations of functions by subject: the standard functions, and those that Kubernetes adds.

May import ``checking`` and ``values``.
"""
