"""jq in a worker process: the protocol between worker and daemon.

May import ``json``.
"""
