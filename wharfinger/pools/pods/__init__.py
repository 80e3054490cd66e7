"""Pools of pods that are kept ready: WorkerPools and WorkerClaims, and the pods that claims get from pools.

The modules read both resources, decide how many pods a pool has and which pod a claim gets, and implement the backend of the
claim scheduler for pods. This folder may import ``claims``, but not ``wharfinger.runtime``.
"""
