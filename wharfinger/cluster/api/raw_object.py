"""An object of the API as the bytes that were received; only its kind, name, namespace, UID and resourceVersion are parsed.

Hooks watch many objects and read few of them, so it would be a waste to parse every object completely. Code that needs more of
an object keeps the parts of the text that it needs (:class:`~wharfinger.formats.json.packed_json.PackedJson`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from sys import intern
from typing import Final, TypeAlias

import msgspec

from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import ShapeError
from wharfinger.kube.resource import ObjectKey, ResourceType


@dataclass(frozen=True, slots=True)
class RawObject:
    """An unparsed object. ``text`` is its JSON, including ``apiVersion`` and ``kind`` even if a list left them out."""

    key: ObjectKey
    uid: str
    resource_version: str
    text: bytes


@dataclass(frozen=True, slots=True)
class RawPage:
    """Some objects of a list; ``resource_version`` is that of the complete list, so all pages of a list have the same
    revision.
    """

    items: tuple[RawObject, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One line of a watch. A BOOKMARK has only ``object.resource_version``; the name in its key and its text are empty."""

    type: WatchType
    object: RawObject


@dataclass(frozen=True, slots=True)
class RawChange:
    """The report that one object was added, changed, or is gone.

    ``object`` is the new state of the object or, if the object is gone, its last state. It is None if the last state is not
    known, because only the object's absence from a list shows that it is gone.
    """

    type: WatchType
    key: ObjectKey
    object: RawObject | None


OnRawChange: TypeAlias = Callable[[RawChange], None]
"""A callback for every change, in order; must not block."""


class _Metadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")


class _Head(msgspec.Struct):
    """The parsed part of an object. The rest is checked to be JSON, and skipped."""

    api_version: str | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name="apiVersion")
    kind: str | msgspec.UnsetType | None = msgspec.UNSET
    metadata: _Metadata | None = None


_HEAD: Final = msgspec.json.Decoder(_Head)


def read_raw_object(text: bytes, resource: ResourceType) -> RawObject:
    """Return the object in a JSON text. If the text lacks ``apiVersion`` or ``kind``, these are added from ``resource``.

    A missing resourceVersion or uid is "". Raises ShapeError for a text that is not a JSON object, or lacks ``metadata.name``.
    """
    head = _read_head(text)
    metadata = head.metadata
    if metadata is None or not metadata.name:
        raise ShapeError(f"an object of {resource.group_kind} without metadata.name")
    missing: list[tuple[str, str]] = []
    if head.api_version is msgspec.UNSET:
        missing.append(("apiVersion", resource.api_version))
    if head.kind is msgspec.UNSET:
        missing.append(("kind", resource.kind))
    return RawObject(
        ObjectKey(resource, intern(metadata.namespace or "") if resource.namespaced else "", metadata.name),
        metadata.uid or "",
        metadata.resource_version or "",
        with_members(text, missing) if missing else text,
    )


def read_bookmark(text: bytes, resource: ResourceType) -> RawObject:
    """Return the object of a BOOKMARK, which only has the revision that the watch has reached. Raises ShapeError."""
    metadata = _read_head(text).metadata
    return RawObject(ObjectKey(resource, "", ""), "", (metadata and metadata.resource_version) or "", b"")


def with_members(text: bytes, members: list[tuple[str, str]]) -> bytes:
    """Return the text of a JSON object, with these members in front of its own."""
    inside = text.lstrip()[1:]
    added = b",".join(msgspec.json.encode(name) + b":" + msgspec.json.encode(value) for name, value in members)
    comma = b"" if inside.lstrip().startswith(b"}") else b","
    return b"{" + added + comma + inside


def _read_head(text: bytes) -> _Head:
    try:
        if not text.isascii():
            text.decode()  # msgspec does not check that skipped parts are valid UTF-8
        return _HEAD.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ShapeError(f"not an object of the API: {error}") from error
