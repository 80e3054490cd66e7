"""Custom resource definitions of charts: the check for upgrades that would break something, applying definitions, and
restoring deleted ones.

May import ``health`` and below.
"""
