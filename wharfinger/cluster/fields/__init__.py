"""Ownership of the fields of an object, according to its ``managedFields``, and conflicts about fields.

Pure; field sets themselves are in ``wharfinger.kube``. This folder may import ``api`` for its errors.
"""
