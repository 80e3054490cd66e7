"""Requests that are not answered from storage alone: access and identity reviews, service account tokens, evictions and bindings,
logs and other streams of Pods, proxies, component statuses.

``endpoint`` has the interface, and ``table`` has the function for each request. This folder may import ``verbs`` and the
folders below it in the layers of pyproject.toml.
"""
