"""What hooks hear of: objects and times, watched, filtered by jq, kept as snapshots and told as contexts.

May import ``containment`` and below.
"""
