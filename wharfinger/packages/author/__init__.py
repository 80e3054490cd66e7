"""``package check``: a package's folder looked over before it is pushed.

May import all other rooms.
"""
