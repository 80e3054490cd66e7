"""Trust in packages: keys and identities, signatures in registries and what proves them, the policy of a
repository, and signing.

May import ``registry`` and below.
"""
