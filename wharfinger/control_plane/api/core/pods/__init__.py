"""Pods: validation of each kind of write, strategy, quality of service, table cells, and the admission plugins for Pods.

This package may import ``pod_specs`` and ``quotas``.
"""
