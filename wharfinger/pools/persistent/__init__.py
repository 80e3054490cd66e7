"""Persistent hooks. If the author of a hook has chosen this, one program keeps running and does many runs of the hook.

This folder may import ``memory``.
"""
