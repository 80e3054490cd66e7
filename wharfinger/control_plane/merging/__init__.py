"""Server-side apply, managed fields, strategic merge patches, and the comparison and check of documents by their types.

Pure. JSON patches and merge patches need no types, and are in ``wharfinger.kube``. This folder may import ``wire`` and ``kinds``.
"""
