"""The objects by key under one global revision, with the changes since for watches: the interface of a storage, its records
and bounded history, and its two implementations, in memory and in SQLite.

It holds JSON bytes and knows no kinds, verbs or requests. It imports no other room.
"""
