"""OpenAPI v3 schemas of settings, values and custom resources: validation, defaults, conversions and the wording of problems.

This folder may import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
