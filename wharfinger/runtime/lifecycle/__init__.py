"""The lifecycle of packages: the state machine of each package with its cancel scopes, the journal of its steps, and its
recorded state. The journal and the recorded state outlive the daemon's process.

This folder may import ``resources``. The decision whether a package may be on is made elsewhere, in the scheduler.
"""
