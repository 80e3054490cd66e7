"""The removal of secrets from text and values that are shown.

May import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
