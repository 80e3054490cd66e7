"""One writer at a time: the Lease by which a daemon leads, its pure state machine, and the fence around records.

May import ``api`` and ``watch``.
"""
