"""The implementations of CEL functions, by subject: the standard functions, and those that Kubernetes adds.

This package may import ``checking`` and ``values``.
"""
