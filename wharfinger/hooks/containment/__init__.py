"""What a hook may do on this machine: its user, its sandbox, its environment, its folders, and the credentials it is given.

May import ``config``.
"""
