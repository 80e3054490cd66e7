"""Talking to an API server: the client and its errors, connections and kubeconfigs, HTTP sessions, discovery, requests that
are tried again, and what a watch sends.

May import no other room of this part.
"""
