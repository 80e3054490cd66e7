"""Observation of the cluster: informers, shared watches, object caches, waits, and the readiness of workloads.

This folder may import ``api`` and ``traffic``.
"""
