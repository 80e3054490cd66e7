"""Admission: all admission plugins in kube-apiserver's order (``chain``), and the evaluation of
ValidatingAdmissionPolicies.

Admission covers everything on which a write depends, or which it changes, beside its object. A plugin about one kind belongs
in that kind's folder in ``api``. Called by the verbs; may import ``backend``, ``catalog`` and everything below.
"""
