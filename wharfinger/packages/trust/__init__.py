"""Trust in packages: keys, cosign's signatures in registries, the policy of a repository, and signing.

May import ``registry`` and below.
"""
