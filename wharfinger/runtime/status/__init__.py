"""The status of a resource: its stages, conditions, reasons with their remedies, and the one-line summary.

All modules except ``writer`` are pure: a transition is a function of the former status. ``writer`` decides when a status is
written. This folder may import ``lifecycle`` and the folders below it in the layers of pyproject.toml.
"""
