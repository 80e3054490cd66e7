"""The application of schemas to custom resources, as in apiextensions-apiserver: defaults, pruning, and the validation of
values, of lists, and of rules in CEL.

The module ``schema`` combines the other modules. The schemas themselves are validated in ``api.apiextensions``. May import
``cel``, ``objects``, ``wire`` and ``kinds``.
"""
