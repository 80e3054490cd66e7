"""The controllers of an offline run: for each schedulable kind the way from an object to its manifests.

May import ``building`` and below.
"""
