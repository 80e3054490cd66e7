"""The daemon's side: the debug socket with its routes, and the listener for metrics.

May import ``encoding`` and below.
"""
