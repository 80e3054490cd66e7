"""CEL as kube-apiserver has it: expressions are compiled (``compiling``), checked against types, estimated, and evaluated
under a budget (``evaluation``).

``schema_rules`` compiles the rules of a schema. Its own rooms are the values, the syntax, the checker, the costs and the
library of functions. May import ``objects``, ``wire`` and ``kinds``; it knows nothing of requests.
"""
