"""The lists of `wharfinger get`: one table with one set of options for every kind of row.

May import ``client`` and the folders below it in the layers of pyproject.toml.
"""
