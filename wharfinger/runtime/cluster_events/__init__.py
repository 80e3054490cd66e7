"""The Kubernetes Events that the daemon writes about packages: their reasons, the rules for writing one, and the writer.

It reads ``core``, and changes nothing in it.

May import ``core`` and the folders below it in the layers of pyproject.toml.
"""
