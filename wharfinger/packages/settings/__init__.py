"""Settings and values: merged, checked against schemas and rules, and reported with every problem.

May import ``rendering`` and the folders below it in the layers of pyproject.toml.
"""
