"""Shards: several daemons on one cluster, each of which manages the Applications of certain namespaces.

The label ``wharfinger.dev/shard`` of a namespace names its shard. Namespaces without the label belong to the main daemon, which
also manages everything that belongs to no namespace. ``ownership`` decides which shard manages an Application, ``labels``
watches the namespaces, ``keeper`` decides which resources this daemon acts on, ``handing_over`` writes the owner, ``seizure``
takes over from a shard that has no daemon, and ``neighbours`` adds the packages of other shards to the scheduler. May import
``core``, ``resources`` and the folders below them in the layers of pyproject.toml.
"""
