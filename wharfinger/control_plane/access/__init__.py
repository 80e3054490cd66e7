"""Authentication and authorization: users and their tokens, RBAC, impersonation, the authority's certificates and the
kubeconfig.

Roles and bindings are read through a ``ClusterView``; nothing is written here. Reviews and service account tokens, which
need the package ``verbs``, are in ``special_endpoints``. May import ``objects``, ``wire`` and ``kinds``.
"""
