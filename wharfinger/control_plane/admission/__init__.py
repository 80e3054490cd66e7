"""What a write depends on, or brings about, beside its object: all admission plugins in kube-apiserver's order (``chain``),
and ValidatingAdmissionPolicies at work.

A plugin about one kind belongs in that kind's folder in ``api``. Called by the verbs; may import ``backend``, ``catalog`` and
everything below.
"""
