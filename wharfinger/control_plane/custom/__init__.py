"""The schemas of custom resources applied to objects: defaults, pruning, list types, values, and rules in CEL, as in
apiextensions-apiserver.

``schema`` applies them in order. The schemas themselves are validated in ``api.apiextensions``. May import ``cel``,
``objects``, ``wire`` and ``kinds``.
"""
