"""Observation of the cluster: informers, shared watches, caches of objects, waits for a state of an object, and the
readiness of workloads.

May import ``api``.
"""
