"""Permission receipts: the smallest roles with which a package can be installed, upgraded and removed.

A trial runs a daemon and an API server in this process, and records the requests that are made as the package's service
account. The composition root passes the function that opens the server. This folder may import all folders of the runtime.
"""
