"""The runtime itself: a router over all packages, the loop that carries out the decisions of their state machines, and the
code that carries out the rounds of global hooks.

No other folder changes the lifecycle store or the scheduler.

May import ``tasks`` and the folders below it in the layers of pyproject.toml.
"""
