"""The parts that folders of several groups share: the interface of admission plugins, common table cells, and small helpers
for defaults.

This is the lowest folder of ``api``: it imports no other folder of ``api``.
"""
