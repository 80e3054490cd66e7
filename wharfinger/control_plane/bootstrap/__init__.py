"""The initial content of a cluster: the roles and objects with which every kube-apiserver starts, written at the first
start.

May import ``backend``, ``catalog`` and ``storage``.
"""
