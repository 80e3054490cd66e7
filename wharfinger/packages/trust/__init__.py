"""Trust in packages: keys and identities, signatures in registries and their evidence, the policy of a
repository, and signing.

May import ``registry`` and the folders below it in the layers of pyproject.toml.
"""
