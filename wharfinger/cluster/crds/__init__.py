"""Custom resource definitions of charts: what an upgrade of one would break, applying them, and bringing back what somebody
deleted.

May import ``health`` and below.
"""
