"""Downloaded packages on this machine's disk: stored by digest, unpacked once, and deleted when they are no longer deployed.

This folder may import ``registry`` and the folders below it in the layers of pyproject.toml.
"""
