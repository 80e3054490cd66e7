"""`wharfinger install` and `uninstall`: the resources that they make with the rights of the user, and the wait for the daemon.

May import ``resources`` and below.
"""
