"""The Kubernetes Events that the daemon writes about packages: their reasons, the rules for writing one, and the writer.

The modules of this folder read ``core``, and change nothing in it. They may import ``core`` and the folders below it in the
layers of pyproject.toml.
"""
