"""The inspection of a running daemon: snapshots for the debug socket, statistics and metrics.

The code in this folder reads the state of the runtime (``core``), and does not change it.

This folder may import ``controllers`` and the folders below it in the layers of pyproject.toml.
"""
