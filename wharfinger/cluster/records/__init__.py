"""Helm's records of releases: their format, chunks of what is larger than a Secret may be, the store, and the heads that are
watched.

May import ``objects`` and below.
"""
