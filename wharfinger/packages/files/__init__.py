"""Files of packages: reading within limits, atomic writing, strict fields of documents, and locks by name.

May import ``errors`` and ``digest``.
"""
