"""Hooks that keep running: a program that serves one run after another, by a protocol of lines that its author has chosen.

May import ``memory``.
"""
