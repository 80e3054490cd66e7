"""The lists of `wharfinger get`. All lists are printed in the same way, and have the same options.

May import ``client`` and the folders below it in the layers of pyproject.toml.
"""
