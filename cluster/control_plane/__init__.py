"""The embedded control plane: a Kubernetes API served from this process, good enough for real kubectl and helm.

From the inside out, each layer seeing only those before it:

========================  ==========================================================================================
kinds, builtin_kinds,     what is served: one declarative table of built-in kinds, and kinds made of
crds, catalog             CustomResourceDefinitions while the server runs
storage, memory_storage   objects by key under one global revision, with the changes since for watches
backend                   storage, catalog, clock and identities: what every verb works on
creation, updating,       the verbs: synchronous functions of the backend, so that each request is one atomic step
patching, deletion,       (no ``await`` between reading and writing is the whole concurrency story)
reading, scaling
watching                  the one thing that waits
discovery, openapi,       the answers that are not objects
tables
handler                   an HTTP request in, a response out; knows routes, negotiation and authentication
service, serving          the process: open, serve on loopback, stop
========================  ==========================================================================================

Semantics follow what a kube-apiserver v1.36 was recorded to answer (``tests/cluster/control_plane/recorded``).
"""
