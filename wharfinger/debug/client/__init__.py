"""The client side of the debug socket: the connection to a daemon and the output of the commands.

May import ``server`` and below.
"""
