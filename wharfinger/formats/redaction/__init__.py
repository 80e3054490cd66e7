"""Secrets out of text and values that are shown.

May import ``json``.
"""
