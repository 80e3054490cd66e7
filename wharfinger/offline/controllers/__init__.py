"""The controllers of an offline run: for each schedulable kind the way from an object to what comes of it.

May import ``building`` and below.
"""
