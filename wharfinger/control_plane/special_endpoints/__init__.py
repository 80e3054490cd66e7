"""Requests that storage alone does not answer: access and identity reviews, service account tokens, evictions and bindings,
logs and other streams of Pods, proxies.

``endpoint`` has the interface, ``table`` the handler of each request. May import ``verbs`` and everything below.
"""
