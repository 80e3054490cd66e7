"""The network as it is: proxies of the environment, authorities to trust, client certificates, and the route of a request.

May import ``errors``.
"""
