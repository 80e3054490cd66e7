"""Storage: the stored objects by key, one revision for all of them, and the latest changes for watches.

This package has the interface of storages, the records and the bounded history, and two implementations: in memory and in
SQLite.

The storage holds JSON bytes and does not depend on kinds, verbs or requests. The package imports no sibling package.
"""
