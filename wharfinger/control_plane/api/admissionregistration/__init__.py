"""The group admissionregistration.k8s.io: validation of admission policies, their bindings and webhook configurations, and
compiling their expressions.

Policies at work are in ``admission``.
"""
