"""The embedded control plane: a Kubernetes API served from this process, as real kubectl and helm know it.

From the inside out, each layer seeing only those before it:

========================  ==========================================================================================
kinds, builtin_kinds,     what is served: one declarative table of built-in kinds, and kinds made of
crds, catalog             CustomResourceDefinitions while the server runs
storage, record, history, objects by key under one global revision, kept as bytes, with the changes since for watches;
memory_storage,           in memory, or in SQLite where many writes are committed together
sqlite_storage, commits
backend                   storage, catalog, clock and identities: what every verb works on
defaults, strategies,     what kinds fill in, set and refuse, by area; what a write depends on beside its object;
validation, admission,    custom kinds by their schemas and rules
custom, cel
creation, updating,       the verbs: synchronous functions of the backend, so that each request is one atomic step
patching, deletion,       (no ``await`` between reading and writing is the whole concurrency story)
reading, scaling
watching                  the one thing that waits
authentication,           who asks, and may he
authorization
discovery, openapi,       the answers that are not objects
tables
handler                   an HTTP request in, a response out; knows routes, negotiation and who may
faults                    what goes wrong on purpose, in front of the handler
controllers               what happens by itself: observers of the backend that write through the same verbs
service, serving          the process: open, serve on loopback, stop
========================  ==========================================================================================

What it says follows what a kube-apiserver v1.36 was recorded to answer (docs/decisions/0017).
"""
