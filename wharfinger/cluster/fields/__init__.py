"""Who owns which field of an object, by its managed fields, and what a conflict about one is.

Pure; field sets themselves are in ``wharfinger.kube``. May import ``api`` for its errors.
"""
