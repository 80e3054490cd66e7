"""Profiles of the running daemon: a thread that samples stacks, and the forms that tools of the field read.

May import ``printing`` and below.
"""
