"""Hooks that keep running, because their authors have chosen so: a program serves one run after another, by a protocol of lines.

This folder may import ``memory``.
"""
