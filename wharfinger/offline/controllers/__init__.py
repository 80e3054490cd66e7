"""The controllers of an offline run: for each schedulable kind, one that makes the manifests of an object.

May import ``building`` and below.
"""
