"""Wharfinger: the package runtime for Kubernetes.

The parts are the folders of the repository's root (``queue/``, ``runtime/``, ...); this folder holds one link to
each, so that ``wharfinger.queue`` can never be confused with the standard library's ``queue``.
"""

__version__ = "0.1.0"
