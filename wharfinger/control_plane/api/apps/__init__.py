"""The group apps: Deployments with ReplicaSets, DaemonSets, StatefulSets, ControllerRevisions.

May import ``api.core``.
"""
