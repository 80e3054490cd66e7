"""The traffic with an API server: how many requests may be under way at the same time, and when each watch last
received something.

This folder may import no other subpackage of ``cluster``.
"""
