"""Merging: how two states of an object become one, and which manager owns which field. This package has server-side apply,
managed fields, strategic merge patches, and the typed view of documents that they share.

Pure. JSON and merge patches need no types and are in ``wharfinger.kube``. May import ``wire`` and ``kinds``.
"""
