"""The built-in kinds, a folder for each API group. Validation, defaults, strategies, table cells and admission plugins of
one kind are in the same folder, as in the upstream server.

A new kind is a folder here, a line in ``by_kind`` and a row in ``catalog``. May import ``custom``, ``cel``, ``access``,
``merging``, ``objects``, ``wire`` and ``kinds``; never the backend or a verb.
"""
