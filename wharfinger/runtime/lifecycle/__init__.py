"""The lifecycle of packages: the state machine of each package with its cancel scopes, the journal of its steps, and the
record of its state. The journal and the record outlive the daemon.

May import ``resources``. The decision whether a package may be on is made elsewhere, in the scheduler.
"""
