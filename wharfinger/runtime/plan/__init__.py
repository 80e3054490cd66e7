"""The command ``wharfinger plan``, which computes from files which packages would be on, and in which order they would run. It
needs no cluster, and uses the daemon's engine.

May import ``inspection`` and the layers below it, although it needs only the scheduler and the reasons.
"""
