"""``package check``: the check of a package's folder before it is pushed.

May import all other folders.
"""
