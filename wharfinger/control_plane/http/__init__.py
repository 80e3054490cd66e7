"""The HTTP layer: the handler, allowed methods, requests for objects and for documents, tables, response forms, metrics, commits,
calls of webhooks, commands in Pods, and the in-memory transport for tests.

This folder may import every sibling package except ``faults`` and ``controllers``.
"""
