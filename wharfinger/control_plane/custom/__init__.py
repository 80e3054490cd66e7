"""What the schema of a custom resource says of its objects: defaults, pruning, list types, values, and rules in CEL, as
apiextensions-apiserver judges them.

``schema`` puts them in order. The schemas themselves are judged in ``api.apiextensions``. May import ``cel``, ``objects``,
``wire`` and ``kinds``.
"""
