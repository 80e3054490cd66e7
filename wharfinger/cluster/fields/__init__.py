"""Ownership of the fields of an object, by its managed fields, and conflicts about them.

Pure; field sets themselves are in ``wharfinger.kube``. May import ``api`` for its errors.
"""
