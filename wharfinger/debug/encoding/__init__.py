"""The snapshots of :mod:`wharfinger.runtime.inspector` as JSON, and back: the format of the debug socket.

This folder may import ``printing``.
"""
