"""The built-in kinds, with a folder for each API group. Validation, defaults, strategies, table cells and admission plugins of a
kind are in the same folder, as in kube-apiserver.

A new kind needs a module here, a line in ``by_kind`` and a row in ``catalog``. This folder may import ``custom``, ``cel``,
``access``, ``merging``, ``objects``, ``wire`` and ``kinds``; never the backend or a verb.
"""
