"""Shards: groups of namespaces. The Applications in the namespaces of each shard are managed by a daemon of their own.

The label ``wharfinger.dev/shard`` of a namespace names its shard. Namespaces without the label belong to the main shard. The
main daemon manages this shard, and also everything that belongs to no namespace.

``ownership`` decides which shard manages an Application, ``labels`` watches the namespaces, ``keeper`` decides which resources
this daemon acts on, ``handing_over`` writes the owner, ``seizure`` takes over from a shard that has no daemon, and ``neighbours``
adds the packages of other shards to the scheduler. This folder may import ``core``, ``resources`` and the folders below them in
the layers of pyproject.toml.
"""
