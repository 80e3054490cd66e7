"""Controllers of Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets, Jobs and CronJobs.

May import ``framework`` and ``kubelet``.
"""
