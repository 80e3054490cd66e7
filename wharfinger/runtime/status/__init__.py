"""The status of a resource: its stages, conditions, reasons with their remedies, and the one-line summary.

All modules but ``writer`` are pure: a transition is a function of the status before. ``writer`` decides when a status is worth
a request. May import ``lifecycle`` and below.
"""
