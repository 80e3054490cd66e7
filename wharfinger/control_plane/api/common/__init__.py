"""The parts that folders of several groups share: the interface of admission plugins, common table cells, and small helpers
for defaults.

The lowest folder of ``api``.
"""
