"""Authentication and authorization: users and their tokens, RBAC, impersonation, the server's certificates and the
kubeconfig.

Roles and bindings are read through a ``ClusterView``; no API object is written here. Reviews and service account tokens, which
need the package ``verbs``, are in ``special_endpoints``. This folder may import ``objects``, ``wire`` and ``kinds``.
"""
