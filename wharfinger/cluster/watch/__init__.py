"""Knowing what is in the cluster: informers, watches that several share, caches of objects, waiting for an object to be so,
and whether a workload is ready.

May import ``api``.
"""
