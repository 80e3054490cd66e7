"""The Kubernetes Events that the daemon writes about packages: their reasons, the rules for writing one, and the writer.

It reads the core and changes nothing. May import ``core`` and below.
"""
