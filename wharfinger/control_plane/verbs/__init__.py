"""Create, update, patch, delete, read, watch and scale: synchronous functions of the backend, so that each request is one
atomic step; only ``watching`` waits.

Beside them is what a verb needs to know of a request: its options and its accepted body. May import ``admission``,
``backend`` and everything below; never HTTP.
"""
