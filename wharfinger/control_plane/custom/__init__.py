"""The schemas of custom resources applied to objects: defaults, pruning, list types, values, and rules in CEL, as in
apiextensions-apiserver.

The module ``schema`` does these steps in order. The schemas themselves are validated in ``api.apiextensions``. May import
``cel``, ``objects``, ``wire`` and ``kinds``.
"""
