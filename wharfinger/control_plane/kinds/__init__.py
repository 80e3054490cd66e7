"""The words in which kinds are described: what a served kind is (``kind``), how its fields merge and print (``type_shapes``,
from ``list_types.json``), how a JSON schema is read, and what follows from these alone.

Which kinds there are is decided in ``catalog``. May import ``storage`` (for the name of a collection) and no other room.
"""
