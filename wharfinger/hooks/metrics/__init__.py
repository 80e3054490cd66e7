"""Metrics that hooks publish: operations from their files, the store of samples, and the hooks' own figures.

May import ``running`` and below.
"""
