"""Documents about the API itself: discovery in both forms, OpenAPI versions 2 and 3, and the names of health checks.

May import ``catalog`` and everything below.
"""
