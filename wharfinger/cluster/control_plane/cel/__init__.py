"""CEL as kube-apiserver has it: checked against the types of schemas, estimated, and evaluated under a budget, in this process.

``tokens``, ``nodes``, ``parser`` and ``macros`` read an expression, ``types``, ``functions`` and ``checker`` judge it,
``costs`` estimates it, ``runtime`` and ``library`` evaluate it, ``schema_types`` and ``objects`` bring schemas and their
values in, and ``rules`` puts it together.

The library behind :mod:`wharfinger.formats.cel` evaluates rules of packages in a worker, since it can neither be bounded
nor interrupted. Here each step is counted, so it needs no worker; and that library neither knows types of schemas nor
what an expression costs.
"""
