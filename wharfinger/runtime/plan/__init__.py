"""``wharfinger plan``: which packages would be on and in which order, computed from files by the same engine, without a
cluster.

May import ``inspection`` and below, though it needs only the scheduler and the reasons.
"""
