"""The application of schemas to custom resources, as in apiextensions-apiserver: defaults, pruning, and validation by the
keywords, the list types and the CEL rules of a schema.

The module ``schema`` combines the other modules. The schemas themselves are validated in ``api.apiextensions``. This folder may
import ``cel``, ``objects``, ``wire`` and ``kinds``.
"""
