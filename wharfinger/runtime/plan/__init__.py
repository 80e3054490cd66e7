"""``wharfinger plan``: it computes from files, without a cluster and by the same engine, which packages would be on, and in which
order.

May import ``inspection`` and below, though it needs only the scheduler and the reasons.
"""
