"""The events of hooks: objects and times, watched, filtered by jq, kept as snapshots and passed on as contexts.

May import ``containment`` and below.
"""
