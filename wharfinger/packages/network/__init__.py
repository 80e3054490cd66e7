"""The network around this process: proxies from the environment, trusted authorities, client certificates, and routes.

May import ``files`` and the folders below it in the layers of pyproject.toml.
"""
