"""Access to an API server: the client, connections and kubeconfigs, HTTP sessions, discovery, retries, and watch events.

This folder may import ``traffic``.
"""
