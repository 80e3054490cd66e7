"""Access to an API server: the client and its errors, connections and kubeconfigs, HTTP sessions, discovery, retries of
requests, and the events of a watch.

May import no other room of this part.
"""
