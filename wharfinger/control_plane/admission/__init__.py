"""Admission: all admission plugins in kube-apiserver's order (``chain``), and the evaluation of
ValidatingAdmissionPolicies.

Plugins cover what a write depends on or changes apart from the written object itself. A plugin about one kind belongs in
that kind's folder in ``api``. Called by the verbs; may import ``backend``, ``catalog`` and everything below.
"""
