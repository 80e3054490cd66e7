"""The built-in kinds, a folder for each API group: validation, defaults, strategies, cells of tables and admission plugins of
one kind lie side by side, as in the upstream server.

A new kind is a folder here, a line in ``by_kind`` and a row in ``catalog``. May import ``custom``, ``cel``, ``access``,
``merging``, ``objects``, ``wire`` and ``kinds``; never the backend or a verb.
"""
