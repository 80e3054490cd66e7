"""The runtime itself: it keeps the store of packages, turns wishes, decisions and reports into tasks and statuses, and holds
rounds of global hooks.

The one room that writes lifecycle, scheduler and status together. May import ``tasks`` and below.
"""
