"""Leader election: the Lease by which one daemon at a time leads, its pure state machine, the fence around all writes, and the
check whether the writer of a pending record is still at work.

This folder may import ``api`` and ``watch``.
"""
