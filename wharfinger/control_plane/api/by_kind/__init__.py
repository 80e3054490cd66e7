"""The tables that give each kind its validation, defaults and strategy, and the modules about kinds of several groups
(``other_groups_…``, ``workload_…``), until these are split.

The highest folder of ``api``; no other folder of ``api`` imports it.
"""
