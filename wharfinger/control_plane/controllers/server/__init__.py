"""Controllers that run in the API server itself.

These controllers write the status of CustomResourceDefinitions and clean up after them, register the APIServices of custom
groups, and aggregate ClusterRoles. May import ``framework``.
"""
