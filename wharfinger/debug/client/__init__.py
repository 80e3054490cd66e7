"""The client side of the debug socket: the connection to a daemon and the output of the commands.

This folder may import ``server`` and the folders below it in the layers of pyproject.toml.
"""
