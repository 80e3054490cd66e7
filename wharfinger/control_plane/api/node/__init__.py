"""The group node.k8s.io: RuntimeClasses.

Nodes themselves are in ``api.core``.
"""
