"""Trust in packages: the keys and identities of signers, signatures in registries, the policy of a repository, and signing.

This folder may import ``registry`` and the folders below it in the layers of pyproject.toml.
"""
