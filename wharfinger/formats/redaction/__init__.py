"""The removal of secrets from text and values that are shown.

This folder may import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
