"""Warm Python interpreters, which are started before there is a script to run: a process that forks idle workers (the *zygote*),
and the pool of these workers.

The modules decide which scripts can be started warm, and by which interpreter. They also run the zygote, and implement the
backend through which the claim scheduler hands out the zygote's workers. This folder may import ``claims``.
"""
