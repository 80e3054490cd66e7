"""What the status of a resource says: stages, conditions, reasons with their remedies, and the one line that sums them up.

All but ``writer`` is pure: a transition is a function of the status before. ``writer`` decides when a status is worth a
request. May import ``lifecycle`` and below.
"""
