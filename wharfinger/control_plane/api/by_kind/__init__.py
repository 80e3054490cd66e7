"""The tables that map each kind to its validation, defaults and strategy, and the modules about kinds of several groups
(``other_groups_…``, ``workload_…``).

The highest folder of ``api``; no other folder of ``api`` imports it.
"""
