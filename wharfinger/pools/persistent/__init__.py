"""Hooks that keep running if their authors have chosen this: one program serves many runs, by a protocol of lines.

This folder may import ``memory``.
"""
