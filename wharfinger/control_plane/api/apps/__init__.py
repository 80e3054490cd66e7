"""The group apps: Deployments with ReplicaSets, DaemonSets, StatefulSets, ControllerRevisions.

This folder may import ``api.core``.
"""
