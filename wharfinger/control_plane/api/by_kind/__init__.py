"""The tables in which the validation, defaults and strategy of a kind are found, and the modules about kinds of several
groups (``other_groups_…``, ``workload_…``), until these are split.

The highest room of ``api``; no other room of ``api`` imports it.
"""
