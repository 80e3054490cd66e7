"""Leader election: the Lease by which one daemon at a time leads, its pure state machine, and the fence around records.

May import ``api`` and ``watch``.
"""
