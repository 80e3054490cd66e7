"""Writing and deleting objects: server-side apply, a row's operations, pruning, and reports of unattended failures.

May import ``drift`` and below.
"""
