"""Requests that storage alone does not answer: access and identity reviews, service account tokens, evictions and bindings,
logs and other streams of Pods, proxies.

``endpoint`` is the seam, ``table`` names who answers. May import ``verbs`` and everything below.
"""
