"""Helm's records of releases: their format, the store, the chunks of a record that is too large for one Secret, and the heads.

A head is the Secret of a revision, without the manifest if the record is in chunks. The heads of all releases are watched.

May import ``objects`` and below.
"""
