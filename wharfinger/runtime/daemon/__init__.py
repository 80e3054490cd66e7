"""The process: options, logging, leadership, rights, readiness for the service manager, and everything opened in order.

The highest room; it may import all others.
"""
