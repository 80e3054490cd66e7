"""The Kubernetes Events that the daemon writes about packages: their reasons, what is worth an Event, and the writer.

It reads the core and changes nothing. May import ``core`` and below.
"""
