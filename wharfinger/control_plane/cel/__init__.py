"""CEL as in kube-apiserver: expressions are compiled (``compiling``), checked against types, estimated, and evaluated within
a cost limit (``evaluation``).

``schema_rules`` compiles the rules of a schema. The folders here hold the values, the syntax, the checker, the costs and the
library of functions. May import ``objects``, ``wire`` and ``kinds``; it knows nothing of requests.
"""
