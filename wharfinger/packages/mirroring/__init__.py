"""Copies of packages, with the images that they reference, from one registry or layout to another.

This folder may import ``settings`` and the folders below it in the layers of pyproject.toml.
"""
