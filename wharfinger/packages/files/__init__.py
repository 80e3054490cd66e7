"""Files of packages: reading within limits, atomic writing, strict checks of the fields in documents, and locks by name.

This folder may import ``errors`` and ``digest``.
"""
