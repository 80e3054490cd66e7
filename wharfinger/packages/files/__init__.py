"""Files of packages: reading within limits, atomic writing, strict checks of the fields in documents, and locks by name.

May import ``errors`` and ``digest``.
"""
