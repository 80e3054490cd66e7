"""Snapshots of the inspector as JSON and back: what goes over the debug socket.

May import ``printing``.
"""
