"""The inspection of a running daemon: snapshots for the debug socket, statistics and metrics.

It reads ``core``, and changes nothing in it.

May import ``controllers`` and the folders below it in the layers of pyproject.toml.
"""
