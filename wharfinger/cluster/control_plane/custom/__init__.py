"""Custom resources: what the schemas of CustomResourceDefinitions say of objects, judged as apiextensions-apiserver does.

``schemas`` looks into a schema, ``values`` and ``formats`` judge values by it, ``defaulting`` fills in, ``lists`` and
``embedded`` hold what JSON Schema cannot say, ``correlation`` finds what a value was before (ratcheting) and ``rules``
evaluates CEL.
"""
