"""Services and Endpoints: validation, and the addresses and ports that the server allocates.

This package may import ``api.common``.
"""
