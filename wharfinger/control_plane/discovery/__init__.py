"""Documents about the API itself: discovery in its old and its aggregated form, OpenAPI versions 2 and 3, and health checks.

This folder may import ``catalog`` and the folders below it in the layers of pyproject.toml.
"""
