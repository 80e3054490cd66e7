"""The Common Expression Language (CEL) as in kube-apiserver.

Expressions are parsed and type-checked (``compiling``), their cost is estimated (``costs``), and they are evaluated within a
cost limit (``evaluation``). ``schema_rules`` compiles the rules of a schema. The folders hold the values, the syntax, the type
checker, the costs and the library of functions. This package may import ``objects``, ``wire`` and ``kinds``; it does
not depend on requests.
"""
