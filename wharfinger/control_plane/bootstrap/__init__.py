"""The initial content of a cluster: the roles and objects that every kube-apiserver creates at its first start.

May import ``backend``, ``catalog`` and ``storage``.
"""
