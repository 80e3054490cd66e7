"""The containment of hooks on this machine: user, sandbox, environment, folders, and the credentials of the cluster.

This folder may import ``config``.
"""
