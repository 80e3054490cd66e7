"""The objects of releases: their owners, the rows of desired objects, applied and live objects, the order of their kinds,
and the namespaces to which a release may write.

This folder may import ``tables``, ``fields``, ``watch`` and ``api``.
"""
