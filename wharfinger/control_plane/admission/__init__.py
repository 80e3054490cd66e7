"""Admission: all admission plugins in kube-apiserver's order (``chain``), and the evaluation of admission policies and
webhooks.

A plugin checks or changes a write, and may depend on other objects (for example, quotas). A plugin about one kind belongs in
that kind's folder in ``api``. Called by the verbs. This folder may import ``backend``, ``catalog`` and the folders below them in
the layers of pyproject.toml.
"""
