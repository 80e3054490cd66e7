"""The group admissionregistration.k8s.io: validation of admission policies, their bindings and webhook configurations, and
the compilation of their expressions.

The evaluation of policies is in ``admission``.
"""
