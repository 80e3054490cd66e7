"""HTTP: from a request to its answer. It has the handler, allowed methods, requests for objects and for documents, tables,
response forms, metrics, commits, and the in-memory transport for tests.

May import every room but ``faults`` and ``controllers``.
"""
