"""The group rbac.authorization.k8s.io: roles and bindings, and the protection against privilege escalation."""
