"""Pods: validation of each way of writing them, strategy, quality of service, cells, and the admission plugins about Pods.

May import ``pod_specs`` and ``quotas``.
"""
