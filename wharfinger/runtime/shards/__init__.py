"""Shards: several daemons on one cluster, each of which keeps the Applications of its own namespaces.

The label ``wharfinger.dev/shard`` of a namespace names its shard; namespaces without it belong to the main daemon, which also
keeps everything that belongs to no namespace. ``ownership`` decides which shard keeps an Application, ``labels`` follows the
namespaces, ``handing_over`` writes the owner, ``seizure`` takes over from a shard that has no daemon, and ``neighbours`` makes
the packages of other shards known to the scheduler. May import ``core``, ``resources`` and everything below.
"""
