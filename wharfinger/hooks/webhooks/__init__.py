"""The webhooks of hooks: the objects that tell API servers of them, the answers of hooks, and chains of conversions.

Pure. May import ``running`` and everything below.
"""
