"""What the running daemon shows: snapshots for the debug socket, statistics and metrics.

Reads the core and changes nothing. May import ``controllers`` and below.
"""
