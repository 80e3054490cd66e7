"""The network around this process: proxies from the environment, trusted authorities, client certificates, and routes.

May import ``errors``.
"""
