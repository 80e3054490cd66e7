"""The implementations of functions: the standard ones and those that Kubernetes adds, by subject.

May import ``checking`` and ``values``.
"""
