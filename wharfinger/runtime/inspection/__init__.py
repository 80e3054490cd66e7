"""The inspection of a running daemon: snapshots for the debug socket, statistics and metrics.

It reads the core and changes nothing. May import ``controllers`` and below.
"""
