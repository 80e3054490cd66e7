"""HTTP: from a request to its response. This package has the handler, allowed methods, requests for objects and for documents,
tables, response forms, metrics, commits, and the in-memory transport for tests.

May import every sibling package except ``faults`` and ``controllers``.
"""
