"""Warm Python interpreters for scripts: a process that forks idle workers, and the pool of those.

The modules find out which scripts can be started warm and by which interpreter, run the zygote, and are the backend of the
claim scheduler for its workers. May import ``claims``.
"""
