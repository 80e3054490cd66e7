"""Controllers of Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets, Jobs and CronJobs.

This folder may import ``framework`` and ``kubelet``.
"""
