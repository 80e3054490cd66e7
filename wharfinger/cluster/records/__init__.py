"""Helm's records of releases: their format, the store, the chunks of a record that is too large for one Secret, and the heads.

A head describes one revision by the labels and annotations of its Secret. The heads of all releases are watched.

May import ``objects`` and the folders below it in the layers of pyproject.toml.
"""
