"""jq in a worker process: the words between worker and daemon.

May import ``json``.
"""
