"""The Kubernetes Events that the daemon writes about packages: their reasons, the rules that decide when an Event is written, and
the writer.

The code in this folder reads the state of the runtime (``core``), and does not change it. It may import ``core`` and the
folders below it in the layers of pyproject.toml.
"""
