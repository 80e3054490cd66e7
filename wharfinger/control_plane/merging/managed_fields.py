"""``metadata.managedFields``: the managers of each field of an object, kept up to date across writes (KEP-555).

Every writer is a *manager*; the fields that it owns are one entry per manager, operation, apiVersion and subresource (entries of
``Apply`` are not distinguished by version). An Update owns what it changed, and takes it from all other managers; a field that
was removed has no owner. Two rules keep entries bounded and accurate: fields that the server alone decides are never tracked, and
at most MAX_UPDATE_ENTRIES entries of Updates are kept, the oldest of which are merged into one named ``ancient-changes``.

The API server compares objects as the client sent them, with defaults filled in, but before the strategy of the kind allocates
addresses or sets an initial status. Callers pass ``after`` in this state; the parts that the endpoint may not change (status on
the main resource, spec on ``/status``) already have their old values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from wharfinger.control_plane.kinds.type_shapes import ListTypes
from wharfinger.control_plane.merging.typed_fields import Changes, Comparison, KeylessItemError, changes, compare
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    canonical_json,
    decode_json,
    encode_json,
    find,
    find_object,
    find_str,
)
from wharfinger.kube.field_sets import EMPTY, FieldSet, FieldSetError
from wharfinger.kube.times import format_time

MAX_UPDATE_ENTRIES: Final = 10
ANCIENT_MANAGER: Final = "ancient-changes"
_MOST_REMEMBERED: Final = 8192
"""The maximum size in bytes of a FieldsV1 whose parsed form is cached."""

_SERVER_METADATA: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip

UNTRACKED: Final = FieldSet.of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SERVER_METADATA)]
)
"""The fields that no entry ever holds."""


class Operation(StrEnum):
    """The kind of write by which a manager owns its fields."""

    APPLY = "Apply"
    UPDATE = "Update"


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """The owner of an entry; an object has at most one entry per owner. ``api_version`` is "" for Apply."""

    operation: Operation
    name: str
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """Return the manager as conflicts name it: ``"alpha"``, ``"kubelet" with subresource "status" using v1``."""
        text = _quoted(self.name)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation is Operation.UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of one manager, the time of its last write (RFC 3339), and the apiVersion of the fields."""

    fields: FieldSet
    time: str
    api_version: str


Managers = Mapping[Manager, Owned]
Elsewhere: TypeAlias = Callable[[str], "tuple[JsonObject, JsonObject, ListTypes] | None"]
"""A function that returns both states of an object at a given apiVersion, and its types there; None if there is no such
version."""


def record_update(
    before: JsonObject | None,
    after: JsonObject,
    *,
    manager: str,
    subresource: str,
    now: datetime,
    lists: ListTypes,
    elsewhere: Elsewhere | None = None,
) -> JsonObject:
    """Return a copy of ``after`` with the managedFields after an Update (PUT, POST, any patch except apply).

    ``before`` is the stored object, None at creation. An object that was stored without entries stays untracked until a
    manager applies it. The managedFields in the request are treated as by the API server: entries replace the stored ones,
    ``[{}]`` drops them all, anything else (and everything on a subresource) is ignored.
    """
    try:
        change = changes(plain(before if before is not None else lists.zero), plain(after), lists)
        if before is not None and elsewhere is None:
            known = _only_later(before, after, change, manager, subresource, now)
            if known is not None:
                return {**after, "metadata": {**find_object(after, "metadata"), "managedFields": known}}
        managers = managers_of_request(before, after, subresource)
        if managers or before is None:
            own = Manager(Operation.UPDATE, manager, find_str(after, "apiVersion"), subresource)
            managers = _changed(managers, change.compared(), own, now, elsewhere)
    except KeylessItemError:
        managers = {}  # as upstream, which cannot determine the owners
    return with_managers(after, managers)


def updated(
    managers: Managers,
    before: JsonObject | None,
    after: JsonObject,
    manager: Manager,
    now: datetime,
    lists: ListTypes,
    elsewhere: Elsewhere | None = None,
) -> Managers:
    """Return the managers after ``manager`` changed the object from ``before`` to ``after``. If ``before`` is None,
    ``after`` is compared with an empty object of the kind. If versions of the kind differ in form, ``elsewhere`` returns
    both states in the version of another manager's entry, which then loses the fields that changed in that version.
    """
    change = compare(plain(before if before is not None else lists.zero), plain(after), lists)
    return _changed(managers, change, manager, now, elsewhere)


def _changed(
    managers: Managers, change: Comparison, manager: Manager, now: datetime, elsewhere: Elsewhere | None
) -> Managers:
    """Return the managers after ``manager`` made a change."""
    taken = change.added.union(change.modified)
    own = taken.difference(UNTRACKED)
    kept = {}
    for other, owned in managers.items():
        lost = taken if other != manager or own is not taken else EMPTY  # its own entry is added again below
        removed = change.removed
        states = elsewhere(owned.api_version) if elsewhere and owned.api_version != manager.api_version else None
        if states is not None:
            there = compare(plain(states[0]), plain(states[1]), states[2])
            lost, removed = there.added.union(there.modified), there.removed
        fields = owned.fields.difference(lost).difference(removed)
        kept[other] = owned if fields is owned.fields else replace(owned, fields=fields)
    if own:
        old = kept.get(manager)
        fields = old.fields.union(own) if old is not None else own
        kept[manager] = Owned(fields, format_time(now), manager.api_version)
    return _capped({other: owned for other, owned in kept.items() if owned.fields})


def _only_later(
    before: JsonObject, after: JsonObject, change: Changes, name: str, subresource: str, now: datetime
) -> list[JsonValue] | None:
    """Return the entries after a change of fields that only this manager owns, with only the time of its entry updated; None for
    other changes. Most updates change the same fields as the manager's last one, so no field sets need to be built.
    """
    stored, said = find(before, "metadata", "managedFields"), find(after, "metadata", "managedFields")
    if not isinstance(stored, list) or not stored or len(stored) > MAX_UPDATE_ENTRIES:
        return None
    if said and said != stored and not subresource:
        return None
    taken = [*change.added, *change.modified]
    if change.removed or not all(path and path not in UNTRACKED for path in taken):
        return None
    api_version = find_str(after, "apiVersion")
    entries: list[JsonValue] = []
    own = 0
    for entry in stored:
        fields = _fields_as_written(entry)
        if fields is None or not isinstance(entry, dict):
            return None
        if _is_of(entry, name, api_version, subresource):
            own += 1
            if not all(path in fields for path in taken):
                return None
            entries.append({**entry, "time": format_time(now)} if taken else entry)
        else:
            if any(path in fields for path in taken):
                return None
            entries.append(entry)
    if own != 1:
        return None
    return sorted(entries, key=_written_order) if len(entries) > 1 else entries


def _is_of(entry: JsonObject, name: str, api_version: str, subresource: str) -> bool:
    """Return whether an entry records the Updates of this manager."""
    return (
        entry.get("manager") == name
        and entry.get("operation") == "Update"
        and entry.get("apiVersion") == api_version
        and entry.get("subresource", "") == subresource
    )


def _fields_as_written(entry: JsonValue) -> FieldSet | None:
    """Return the fields of an entry; None if it has none, or is not in the form that this module writes."""
    if not isinstance(entry, dict) or "time" not in entry:
        return None
    written = entry.get("fieldsV1")
    if not isinstance(written, dict):
        return None
    try:
        return _fields(written) or None
    except FieldSetError:
        return None


def _written_order(entry: JsonValue) -> tuple[str, str, str, str, str]:
    """Return the sort key of a written entry, the same as that of :func:`_entry_order`."""
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    operation, time, name, version, subresource = (find_str(entry, field) for field in names)
    return operation, time, name, version, subresource


def managers_of_request(before: JsonObject | None, after: JsonObject, subresource: str) -> Managers:
    """Return the managers before an update. These are the managers in the request, if it contains any and is not for a
    subresource; otherwise the stored ones."""
    if not subresource:
        if _is_reset(after):
            return {}
        said = managers_of(after)
        if said:
            return said
    return managers_of(before) if before is not None else {}


def managers_of(obj: JsonObject) -> Managers:
    """Return the entries of an object; {} if there are none, or any of them cannot be read."""
    entries = find(obj, "metadata", "managedFields")
    found: dict[Manager, Owned] = {}
    try:
        for entry in entries if isinstance(entries, list) else []:
            manager, owned = _read_entry(as_object(entry, "managedFields"))
            known = found.get(manager)
            found[manager] = replace(owned, fields=known.fields.union(owned.fields)) if known is not None else owned
    except (ShapeError, FieldSetError, ValueError):
        return {}
    return found


def with_managers(obj: JsonObject, managers: Managers) -> JsonObject:
    """Return a shallow copy of the object with these entries: Apply first, then by time, manager, version and subresource."""
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "managedFields"}
    entries = [_write_entry(manager, owned) for manager, owned in sorted(managers.items(), key=_entry_order)]
    if entries:
        metadata["managedFields"] = list[JsonValue](entries)
    return obj | {"metadata": metadata}


def _entry_order(item: tuple[Manager, Owned]) -> tuple[str, str, str, str, str]:
    manager, owned = item
    return manager.operation.value, owned.time, manager.name, owned.api_version, manager.subresource


def _read_entry(entry: JsonObject) -> tuple[Manager, Owned]:
    operation = Operation(find_str(entry, "operation"))
    api_version = find_str(entry, "apiVersion")
    if not api_version or find_str(entry, "fieldsType") != "FieldsV1":
        raise ValueError("no version, or no FieldsV1")
    manager = Manager(
        operation,
        find_str(entry, "manager"),
        api_version if operation is Operation.UPDATE else "",
        find_str(entry, "subresource"),
    )
    return manager, Owned(_fields(find_object(entry, "fieldsV1")), find_str(entry, "time"), api_version)


def _fields(written: JsonObject) -> FieldSet:
    """Parse a FieldsV1, with a cache, because most objects of a kind have the same owned fields."""
    encoded = encode_json(written)
    return _read_fields(encoded) if len(encoded) <= _MOST_REMEMBERED else FieldSet.from_fields_v1(written)


@lru_cache(maxsize=512)
def _read_fields(encoded: bytes) -> FieldSet:
    return FieldSet.from_fields_v1(decode_json(encoded, max_bytes=_MOST_REMEMBERED, what="fieldsV1"))


def _write_entry(manager: Manager, owned: Owned) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation.value,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.to_fields_v1(),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def _capped(managers: Managers) -> Managers:
    """Return at most MAX_UPDATE_ENTRIES Updates: the oldest of one version are merged into one entry, until there are few
    enough.
    """
    oldest = sorted(
        (manager for manager in managers if manager.operation is Operation.UPDATE),
        key=lambda manager: (managers[manager].time, manager),
    )
    kept = dict(managers)
    surplus = len(oldest) - MAX_UPDATE_ENTRIES
    first_of: dict[str, Manager] = {}
    for manager in oldest:
        if surplus <= 0:
            break
        version = manager.api_version
        if version not in first_of:
            first_of[version] = manager
            continue
        bucket = Manager(Operation.UPDATE, ANCIENT_MANAGER, version)
        merged = kept.pop(manager)
        into = kept.pop(bucket, None) or kept.pop(first_of[version], None)
        kept[bucket] = replace(merged, fields=merged.fields.union(into.fields if into is not None else EMPTY))
        surplus -= 1
    return kept


def _is_reset(obj: JsonObject) -> bool:
    """Return whether an object has ``managedFields: [{}]``, with which a client removes all entries."""
    return find(obj, "metadata", "managedFields") == [{}]


def plain(obj: JsonObject) -> JsonObject:
    """Return the object without ``managedFields``; the same object if it has none."""
    if find(obj, "metadata", "managedFields") is None:
        return obj
    metadata = {**find_object(obj, "metadata")}
    del metadata["managedFields"]
    return {**obj, "metadata": metadata}


def _quoted(text: str) -> str:
    return canonical_json(text).decode()
