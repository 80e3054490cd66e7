"""The health of releases' objects: readiness over time, rules and expressions of packages, stalls and deadlines.

This folder may import ``apply`` and the folders below it in the layers of pyproject.toml.
"""
