"""Admission: all admission plugins in kube-apiserver's order (``chain``), and the evaluation of
ValidatingAdmissionPolicies.

A plugin checks or changes what a write concerns besides the written object itself (for example, quotas). A plugin about one
kind belongs in that kind's folder in ``api``. Called by the verbs; may import ``backend``, ``catalog`` and everything below.
"""
