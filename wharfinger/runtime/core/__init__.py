"""The runtime itself: it keeps the store of packages, turns wanted states, decisions and reports into tasks and statuses,
and runs the rounds of global hooks.

The only room that writes lifecycle, scheduler and status together. May import ``tasks`` and below.
"""
