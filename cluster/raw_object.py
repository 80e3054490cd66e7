"""An object of the API as the bytes that came, and the little that must be known of it: who it is, and in which state.

Hooks watch many objects and look into few, so what they watch is never parsed here. Owners of views keep what they need of the
text (:class:`~wharfinger.formats.packed_json.PackedJson`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from wharfinger.cluster.client import WatchType
from wharfinger.cluster.resource import ObjectKey


@dataclass(frozen=True, slots=True)
class RawObject:
    """``text`` is the object's JSON, with ``apiVersion`` and ``kind`` in it also where a list left them out."""

    key: ObjectKey
    uid: str
    resource_version: str
    text: bytes


@dataclass(frozen=True, slots=True)
class RawChange:
    """One object was added, changed, or is gone.

    ``object`` is the new state, or the last one; None: it is gone and its last state was not told (a list no longer has it).
    """

    type: WatchType
    key: ObjectKey
    object: RawObject | None


OnRawChange: TypeAlias = Callable[[RawChange], None]
"""Told every change in its order; must not block."""
