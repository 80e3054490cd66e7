"""The first objects of a cluster: the APIServices of the built-in groups, priority classes, flow control and the Service
``kubernetes``.

``first_objects.json`` (made by ``generate_first_objects.py``) holds them as a kube-apiserver stores them; roles and bindings
are in :mod:`~wharfinger.control_plane.bootstrap.roles`. The first objects are written only at the first start, which is
recognized by the absence of the object ``_MARK``. Later starts write none of them, so changes and deletions by a user are
kept. The objects that the server itself needs are restored by
:mod:`~wharfinger.control_plane.controllers.standing_objects`.
"""

from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.kubernetes_version import table
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.times import format_time

DATA: Final = table(Path(__file__).with_name("first_objects.json"))
_MAX_DATA_BYTES: Final = 100_000
_MARK: Final = Key(Collection("apiregistration.k8s.io", "apiservices"), "", "v1.")
"""The marker object: if it is stored, the first objects have already been written."""


def install(backend: Backend) -> None:
    """Store the first objects if the storage is new."""
    if backend.storage.get(_MARK) is None:
        for key in _by_key():
            restore(backend, key)


def is_first(key: Key) -> bool:
    """Return whether this is the key of one of the first objects of a cluster."""
    return key in _by_key()


def restore(backend: Backend, key: Key) -> None:
    """Store one of the first objects with a new UID and new times. Raises KeyError if no first object has this key."""
    obj = _by_key()[key]
    backend.put(key, _stamped(obj, find_object(obj, "metadata"), format_time(backend.now()), backend.new_uid()))


def _stamped(obj: JsonObject, metadata: JsonObject, time: str, uid: str) -> JsonObject:
    """Return the object with the fields that are new in each cluster: UID and times."""
    entries: list[JsonValue] = [
        {**entry, "time": time} for entry in find_list(metadata, "managedFields") if isinstance(entry, dict)
    ]
    found = {**obj, "metadata": {**metadata, "uid": uid, "creationTimestamp": time, "managedFields": entries}}
    conditions: list[JsonValue] = [
        {**item, "lastTransitionTime": time}
        for item in find_list(obj, "status", "conditions")
        if isinstance(item, dict)
    ]
    return {**found, "status": {**find_object(obj, "status"), "conditions": conditions}} if conditions else found


@cache
def _by_key() -> dict[Key, JsonObject]:
    kinds = {(kind.stored_api_version, kind.kind): kind.collection for kind in BUILTIN_KINDS}
    return {
        Key(
            kinds[find_str(obj, "apiVersion"), find_str(obj, "kind")],
            find_str(obj, "metadata", "namespace"),
            find_str(obj, "metadata", "name"),
        ): obj
        for obj in _objects()
    }


@cache
def _objects() -> tuple[JsonObject, ...]:
    listed = decode_json(DATA.read_bytes(), max_bytes=_MAX_DATA_BYTES, what=DATA.name)
    return tuple(as_object(item, DATA.name) for item in listed) if isinstance(listed, list) else ()
