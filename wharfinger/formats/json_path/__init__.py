"""JSONPath as kubectl has it: single paths, and templates of paths and text.

May import ``json``.
"""
