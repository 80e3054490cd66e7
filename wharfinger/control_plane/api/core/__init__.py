"""The core group.

It contains the modules of small kinds (namespaces, nodes, events, secrets) and those that assemble the tables of the group.
Larger kinds have folders.
"""
