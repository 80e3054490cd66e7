"""Wharfinger: the package runtime for Kubernetes.

The parts are the folders of this package (``queue/``, ``runtime/``, ...), so that ``wharfinger.queue`` can never be confused
with the standard library's ``queue``. The repository's root has links to four of them; nothing is imported through a link.
"""

__version__ = "0.1.0"
