"""`wharfinger install` and `uninstall`: they create or delete resources with the rights of the user, and wait for the daemon.

This folder may import ``resources`` and the folders below it in the layers of pyproject.toml.
"""
