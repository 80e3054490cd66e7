"""Rules for objects of every kind: names, metadata, labels, selectors, addresses, amounts and formats of strings; and the
interfaces ``kind_rules`` and ``strategy``, with which a kind defines its own rules.

All modules are pure. This folder may import ``wire`` and ``kinds``; rules of one kind belong in ``api``.
"""
