"""Observation of the cluster: informers, shared watches, object caches, waits, and the readiness of workloads.

May import ``api`` and ``traffic``.
"""
