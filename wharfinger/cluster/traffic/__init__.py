"""The traffic with an API server: how many requests may be under way at once, and when each watch last received something.

May import no other subpackage of ``cluster``.
"""
