"""The objects of releases: whose they are, the rows that say what is wanted, what was applied and what is live, the order of
their kinds, and where a release may write.

May import ``tables``, ``fields``, ``watch`` and ``api``.
"""
