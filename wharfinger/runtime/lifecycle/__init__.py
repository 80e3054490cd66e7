"""How far a package has come, and what of that outlives the daemon: the state machine of each package with its cancel scopes,
the journal of its steps, and the record in its state.

May import ``resources``; nothing here looks at why a package may be on.
"""
