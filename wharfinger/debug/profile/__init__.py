"""Profiles of the running daemon: a thread that samples stacks, and the formats that other tools read.

May import ``printing`` and below.
"""
