"""Controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs.

May import ``framework`` and ``kubelet``.
"""
