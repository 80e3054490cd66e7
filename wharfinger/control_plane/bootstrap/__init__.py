"""The initial content of a cluster: the roles and objects that every kube-apiserver creates at its first start.

This package may import ``backend``, ``catalog`` and ``storage``.
"""
