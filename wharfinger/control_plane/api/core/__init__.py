"""The core group.

This folder contains the modules of small kinds (namespaces, nodes, events, secrets) and the modules that assemble the tables of
the group. Larger kinds have folders.
"""
