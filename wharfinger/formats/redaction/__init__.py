"""The removal of secrets from text and values that are shown.

May import ``json``.
"""
