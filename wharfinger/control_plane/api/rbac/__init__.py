"""The group rbac.authorization.k8s.io: roles and bindings, and the check that nobody grants more than they have."""
