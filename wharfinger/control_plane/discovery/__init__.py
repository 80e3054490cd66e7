"""Documents about the API itself: discovery in its old and its aggregated form, OpenAPI versions 2 and 3, and health checks.

May import ``catalog`` and everything below it.
"""
