"""Warm Python interpreters, which are started before there is a script to run: a process that forks idle workers (the *zygote*),
and the pool of these workers.

The modules decide which scripts can be started warm, and by which interpreter. They run the zygote, and implement the backend of
the claim scheduler for its workers. This folder may import ``claims``.
"""
