"""Helm's records of releases: their format, chunks for records that are too large for a Secret, the store, and the watched heads.

May import ``objects`` and below.
"""
