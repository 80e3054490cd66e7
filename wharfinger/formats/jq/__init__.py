"""jq in a worker process: the program of the worker, and its protocol with the daemon.

May import ``json``.
"""
