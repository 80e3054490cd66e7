"""The model of kinds: the description of a served kind (``kind``), the rules by which its fields merge and print
(``type_shapes``, from ``list_types.json``), accessors for JSON schemas (``schema_nodes``), and functions that need only these.

The list of existing kinds is in ``catalog``. This folder may import ``storage`` (for the name of a collection) and no other
sibling package.
"""
