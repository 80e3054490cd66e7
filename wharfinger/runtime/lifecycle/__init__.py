"""The progress of a package, and the part of it that outlives the daemon: the state machine of each package with its cancel
scopes, the journal of its steps, and the record of its state.

May import ``resources``; nothing here knows why a package may be on.
"""
