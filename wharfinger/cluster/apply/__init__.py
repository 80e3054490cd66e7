"""Writing and deleting objects: server-side apply, the operations that the reconciler performs for a row, pruning, and
troubles nobody waits for.

May import ``drift`` and below.
"""
