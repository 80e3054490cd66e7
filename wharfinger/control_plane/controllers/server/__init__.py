"""Controllers that do their work inside the write that causes it, as observers of the backend.

These controllers write the status of CustomResourceDefinitions and clean up after them, register the APIServices of custom
groups, and aggregate ClusterRoles. This folder may import ``framework``.
"""
