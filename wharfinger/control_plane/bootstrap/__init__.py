"""What is in a cluster before anybody writes to it: the roles and objects that every kube-apiserver brings along, and writing
them at the first start.

May import ``backend``, ``catalog`` and ``storage``.
"""
