"""``metadata.managedFields``: the managers of each field of an object, kept up to date across writes (KEP-555).

Every writer is a *manager*. An object has one entry for each combination of manager, operation, apiVersion and subresource
(entries of ``Apply`` are not distinguished by version). An entry contains the fields that its manager owns. The manager of an
Update becomes the only owner of the fields that it changed. A field that was removed has no owner.

Two rules keep the entries small and accurate. Fields that the server alone decides are never tracked. At most
MAX_UPDATE_ENTRIES entries of Updates are kept; the oldest ones are merged into an entry named ``ancient-changes``.

The API server compares objects as the client sent them, with defaults, but before the strategy of the kind allocates addresses or
sets an initial status. Callers pass ``after`` in this state. The parts that the endpoint cannot change (status on the main
resource, spec on ``/status``) already have their old values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias

from wharfinger.control_plane.kinds.type_shapes import ListTypes
from wharfinger.control_plane.merging.typed_fields import Changes, Comparison, KeylessItemError, changes, compare
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    canonical_json,
    find,
    find_object,
    find_str,
)
from wharfinger.kube.field_sets import EMPTY, FieldPath, FieldSet, FieldSetError, read_fields_v1
from wharfinger.kube.times import format_time

MAX_UPDATE_ENTRIES: Final = 10
ANCIENT_MANAGER: Final = "ancient-changes"

_SERVER_METADATA: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip

UNTRACKED: Final = FieldSet.of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SERVER_METADATA)]
)
"""The fields that no entry of ``metadata.managedFields`` contains."""


class Operation(StrEnum):
    """The kind of write by which a manager owns its fields."""

    APPLY = "Apply"
    UPDATE = "Update"


_OPERATIONS: Final = frozenset(Operation)


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """The owner of an entry of ``managedFields``. An object has at most one entry per owner.

    ``api_version`` is "" for Apply.
    """

    operation: Operation
    name: str
    api_version: str = ""
    subresource: str = ""

    @property
    def written(self) -> tuple[str, ...]:
        """The owner as a tuple of texts: operation, name, version and subresource."""
        return self.operation.value, self.name, self.api_version, self.subresource

    def __str__(self) -> str:
        """Return the manager as conflicts name it: ``"alpha"``, ``"kubelet" with subresource "status" using v1``."""
        text = _quoted(self.name)
        if self.subresource:
            text += f" with subresource {_quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation is Operation.UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields that one manager owns, the time of its last write (RFC 3339), and the apiVersion in which the fields are
    named.
    """

    fields: FieldSet
    time: str
    api_version: str


Managers = Mapping[Manager, Owned]
Elsewhere: TypeAlias = Callable[[str], "tuple[JsonObject, JsonObject, ListTypes] | None"]
"""A function that takes an apiVersion. It returns the object before a change and the object after it, both in this version, and
the types of the version; None if the version does not exist.
"""


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
    manager applies it. The ``managedFields`` in the request are handled as in the API server: entries replace the stored ones,
    ``[{}]`` removes them all, and anything else is ignored. In a request to a subresource, ``managedFields`` are
    always ignored.
    """
    try:
        change = changes(plain(before if before is not None else lists.zero), plain(after), lists)
        if before is not None and elsewhere is None:
            own = Manager(Operation.UPDATE, manager, find_str(after, "apiVersion"), subresource)
            known = _changed_entries(before, after, change, own, now)
            if known is not None:
                metadata = {
                    name: value for name, value in find_object(after, "metadata").items() if name != "managedFields"
                }
                return {**after, "metadata": {**metadata, "managedFields": known} if known else metadata}
        managers = managers_of_request(before, after, subresource)
        if managers or before is None:
            own = Manager(Operation.UPDATE, manager, find_str(after, "apiVersion"), subresource)
            managers = _changed(managers, change.compared(), own, now, elsewhere)
    except KeylessItemError:
        managers = {}  # as upstream does, because the owners cannot be determined
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
    """Return the managers after ``manager`` changed the object from ``before`` to ``after``.

    If ``before`` is None, ``after`` is compared with an empty object of the kind.

    The entry of another manager may be written in another version of the kind. If the versions differ in form, ``elsewhere``
    returns both states in the version of the entry. The entry then loses the fields that differ between these two states.
    """
    change = compare(plain(before if before is not None else lists.zero), plain(after), lists)
    return _changed(managers, change, manager, now, elsewhere)


def _changed(
    managers: Managers, change: Comparison, manager: Manager, now: datetime, elsewhere: Elsewhere | None
) -> Managers:
    """Return the managers after ``manager`` made the changes in ``change``; ``elsewhere`` has the same meaning as in
    :func:`updated`.
    """
    taken = change.added.union(change.modified)
    own = taken.difference(UNTRACKED)
    kept = {}
    for other, owned in managers.items():
        lost = taken if other != manager or own is not taken else EMPTY  # the manager's own fields are added below
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


def _changed_entries(
    before: JsonObject, after: JsonObject, change: Changes, own: Manager, now: datetime
) -> list[JsonValue] | None:
    """Return the encoded entries after a change, or None if the change needs :func:`_changed` and :func:`with_managers`.

    The result is the same as the result of these functions, but computed faster: most updates change a few fields of one or two
    entries, and the other entries are neither decoded nor changed.
    """
    stored, requested = find(before, "metadata", "managedFields"), find(after, "metadata", "managedFields")
    if not isinstance(stored, list) or not 0 < len(stored) < MAX_UPDATE_ENTRIES:
        return None
    if requested and requested is not stored and requested != stored and not own.subresource:
        return None
    taken, removed = [*change.added, *change.modified], change.removed
    if not all(path and path not in UNTRACKED for path in taken):
        return None
    sets = change.compared()
    entries: list[JsonValue] = []
    seen: set[tuple[str, ...]] = set()
    mine: JsonObject = {}
    for entry in stored:
        fields = _fields_as_written(entry)
        if fields is None or not isinstance(entry, dict) or (whose := _owner_of(entry)) in seen:
            return None
        seen.add(whose)
        if whose == own.written:
            mine = entry
        elif any(map(partial(_has, fields), taken)) or any(map(partial(_has, fields), removed)):
            manager, owned = _read_entry(entry)
            left = owned.fields.difference(sets.added).difference(sets.modified).difference(sets.removed)
            if left:
                entries.append(_write_entry(manager, replace(owned, fields=left)))
        else:
            entries.append(entry)
    if taken or mine:
        entries += _own_entry(mine, own, taken, sets, now)
    return sorted(entries, key=_written_order) if len(entries) > 1 else entries


def _own_entry(
    mine: JsonObject, own: Manager, taken: Sequence[FieldPath], sets: Comparison, now: datetime
) -> list[JsonValue]:
    """Return a list with the entry of the manager after its change, or an empty list if the manager owns no field; ``mine`` is
    the manager's entry before the change, or {}.
    """
    time = format_time(now)
    written = find_object(mine, "fieldsV1")
    if mine and not sets.removed and all(map(partial(_has, written), taken)):
        return [{**mine, "time": time} if taken else mine]
    owned = _read_entry(mine)[1] if mine else Owned(EMPTY, time, own.api_version)
    fields = owned.fields.difference(sets.removed).union(sets.added).union(sets.modified)
    return [_write_entry(own, Owned(fields, time if taken else owned.time, own.api_version))] if fields else []


def _owner_of(entry: JsonObject) -> tuple[str, ...]:
    """Return the manager that an encoded entry names, in the form of ``Manager.written``."""
    names = ("operation", "manager", "apiVersion", "subresource")
    operation, name, api_version, subresource = (find_str(entry, field) for field in names)
    return operation, name, api_version if operation == "Update" else "", subresource


def _has(fields: JsonObject, path: FieldPath) -> bool:
    """Return whether a FieldsV1 has a path."""
    here: JsonValue = fields
    for element in path:
        here = here.get(element) if isinstance(here, dict) else None
    return isinstance(here, dict) and (not here or "." in here)


def _fields_as_written(entry: JsonValue) -> JsonObject | None:
    """Return the fields of an entry; None if the fields are missing, or not in the form that this module writes."""
    if not isinstance(entry, dict) or entry.get("operation") not in _OPERATIONS or not entry.get("apiVersion"):
        return None
    fields = entry.get("fieldsV1")
    if entry.get("fieldsType") != "FieldsV1" or "time" not in entry or not isinstance(fields, dict):
        return None
    return fields or None


def _written_order(entry: JsonValue) -> tuple[str, str, str, str, str]:
    """Return the sort key of an encoded entry, which is the same as that of :func:`_entry_order`."""
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    operation, time, name, version, subresource = (find_str(entry, field) for field in names)
    return operation, time, name, version, subresource


def managers_of_request(before: JsonObject | None, after: JsonObject, subresource: str) -> Managers:
    """Return the managers before an update.

    These are the managers in the request, if the request has any and is not for a subresource; otherwise the stored managers. A
    request with ``[{}]`` has none.
    """
    if not subresource:
        if _is_reset(after):
            return {}
        requested = managers_of(after)
        if requested:
            return requested
    return managers_of(before) if before is not None else {}


def managers_of(obj: JsonObject) -> Managers:
    """Return the entries of an object's ``managedFields``; {} if there are none, or if any of them cannot be read."""
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
    """Return a shallow copy of the object with these managers as its ``managedFields``; without managers, the field is left out.

    Entries of Apply come first. Entries of the same operation are sorted by time, manager, version and subresource.
    """
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
    return manager, Owned(read_fields_v1(find_object(entry, "fieldsV1")), find_str(entry, "time"), api_version)


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
    """Return the managers with at most MAX_UPDATE_ENTRIES entries of Updates, if possible.

    The oldest entries of a version are merged into one entry until there are few enough.
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
    """Return whether an object has ``managedFields: [{}]``, by which a client requests that all entries are removed."""
    return find(obj, "metadata", "managedFields") == [{}]


def plain(obj: JsonObject) -> JsonObject:
    """Return the object without ``managedFields``; the same object if this field is missing."""
    if find(obj, "metadata", "managedFields") is None:
        return obj
    metadata = {**find_object(obj, "metadata")}
    del metadata["managedFields"]
    return {**obj, "metadata": metadata}


def _quoted(text: str) -> str:
    return canonical_json(text).decode()
