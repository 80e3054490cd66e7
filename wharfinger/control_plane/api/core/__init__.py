"""The core group.

Here are the modules of small kinds (namespaces, nodes, events, secrets) and those that put the tables of the group together;
larger kinds have folders.
"""
