"""Server-side apply, managed fields, strategic merge patches, and the typed view of documents that they share.

Pure. JSON patches and merge patches need no types, and are in ``wharfinger.kube``. May import ``wire`` and ``kinds``.
"""
