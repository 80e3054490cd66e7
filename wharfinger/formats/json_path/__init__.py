"""JSONPath as in kubectl: single paths, and templates of paths and text.

This folder may import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
