"""Services and Endpoints: validation, and the addresses and ports that the server allocates.

May import ``api.common``.
"""
