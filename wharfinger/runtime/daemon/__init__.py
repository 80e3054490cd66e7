"""The daemon's process: its options, log, leadership and rights, the report of its readiness to the service manager, and the
start and stop of all parts in order.

The highest folder of the runtime; it may import all other folders.
"""
