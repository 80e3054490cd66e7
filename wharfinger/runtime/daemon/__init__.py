"""The process: options, logging, leadership, rights, readiness for the service manager, and the start and stop of all parts
in order.

The highest folder; it may import all others.
"""
