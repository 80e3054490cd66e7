"""Pools of pods that are kept ready: WorkerPools and WorkerClaims, and the pods between them.

The modules read both resources, decide how many pods a pool has and what becomes of a claim, and are the backend of the claim
scheduler for pods. May import ``claims``; knows nothing of the runtime.
"""
