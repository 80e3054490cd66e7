"""YAML as Kubernetes and Helm read and print it, with the line of every value.

This folder may import the folders and modules of ``formats`` that are below it in the layers of pyproject.toml.
"""
