"""Writing and deleting objects: server-side apply, the operations that the reconciler performs for a row, pruning, and
reports of failures that no caller waits for.

May import ``drift`` and below.
"""
