"""JSONPath as in kubectl: single paths, and templates of paths and text.

May import ``json``.
"""
