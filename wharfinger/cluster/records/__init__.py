"""Helm's records of releases: their format, chunks for records larger than a Secret may be, the store, and the heads that
are watched.

May import ``objects`` and below.
"""
