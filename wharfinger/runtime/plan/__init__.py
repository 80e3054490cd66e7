"""``wharfinger plan``: it computes from files, without a cluster and with the daemon's engine, which packages would be on,
and in which order they would run.

May import ``inspection`` and below, although it needs only the scheduler and the reasons.
"""
