"""The daemon's process: its options, log, leadership and rights, the report of its readiness to the service manager, and the
start and stop of all parts in order.

This folder may import all other folders of the runtime, except for ``receipts``.
"""
