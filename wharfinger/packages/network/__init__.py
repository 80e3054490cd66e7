"""The network around this process: proxies from the environment, trusted authorities, client certificates, and routes.

This folder may import ``files`` and the folders below it in the layers of pyproject.toml.
"""
