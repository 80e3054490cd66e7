"""Helm's records of releases: their format, the store, the chunks of a record that is too large for one Secret, and the heads.

The *head* of a record is the Secret that Helm reads. Its labels and annotations describe one revision. The heads of all releases
are watched.

This folder may import ``objects`` and the folders below it in the layers of pyproject.toml.
"""
