"""The lists of `wharfinger get`. All lists are printed in the same way, and have the same options.

This folder may import ``client`` and the folders below it in the layers of pyproject.toml.
"""
