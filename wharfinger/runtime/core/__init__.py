"""The runtime itself: a router over all packages, the loop that performs what their machines decide, and the shell of the rounds
of global hooks.

The only folder that changes the lifecycle store and the scheduler. May import ``tasks`` and below.
"""
