"""Server-side apply (KEP-555): a manager states the fields that it wants (its intent), and owns exactly these.

The intent is merged into the live object by the kind's merge rules. A field is removed if the manager owned it since its last
apply, the intent omits it, and no other manager owns it. A change of a field that another manager owns is a conflict, unless the
apply is forced. If two managers set a field to the same value, both own it.

The steps are pure functions of documents and field sets: merge → prune → compare with the live object → find conflicts → write
entries. Defaults are not added here: callers add them afterwards, as the API server does.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation
from wharfinger.control_plane.merging.managed_fields import (
    UNTRACKED,
    Manager,
    Managers,
    Operation,
    Owned,
    managers_of,
    plain,
    updated,
    with_managers,
)
from wharfinger.control_plane.merging.typed_check import all_type_problems
from wharfinger.control_plane.merging.typed_fields import (
    by_element,
    compare,
    fields_of,
    item_element,
    with_named_parents,
)
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonError, JsonObject, JsonValue, decode_json, find, find_object, find_str
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.kube.field_sets import EMPTY, FieldSet, path_text, same_value
from wharfinger.kube.times import format_time, parse_time

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""If an object without entries in ``managedFields`` is applied for the first time, this manager becomes the owner of the fields
that the object already has.
"""

KUBECTL: Final = "kubectl"
MAX_LAST_APPLIED_BYTES: Final = 262_144

_SERVER_OWNED: Final = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"})


class ApplyRefusedError(FormatError):
    """The intent contains managedFields, which the API server refuses with 400."""


class UndeclaredFieldError(FormatError):
    """The intent does not match the schema (an undeclared field, a duplicate item), which the API server refuses with 500."""


class ApplyConflict(Exception):  # noqa: N818 - the name of the thing in the API
    """Other managers own fields that the intent would change.

    ``conflicts`` holds pairs, sorted by manager: the manager as printed (``"alpha"``, ``"kubectl-edit" using v1``), and the path
    of a field (``.data.x``). The message is the API server's.
    """

    def __init__(self, conflicts: tuple[tuple[str, str], ...]) -> None:
        self.conflicts = conflicts
        if len(conflicts) == 1:
            manager, path = conflicts[0]
            super().__init__(f"Apply failed with 1 conflict: conflict with {manager}: {path}")
            return
        lines: list[str] = []
        for manager in dict.fromkeys(manager for manager, _path in conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {path}" for owner, path in conflicts if owner == manager]
        super().__init__(f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines))


def apply(
    live: JsonObject | None,
    intent: JsonObject,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: datetime,
    lists: ListTypes,
    reached: JsonObject | None = None,
    sent: JsonObject | None = None,
) -> JsonObject:
    """Return the object after ``manager`` applied ``intent`` to ``live`` (None for a new object), with its managedFields.

    The arguments are not changed. Fields that only the server sets (uid, resourceVersion, …) are ignored in the intent, unless
    the object is new. The caller first removes fields that the endpoint cannot change (status on the main resource), and adds
    defaults afterwards. ``reached`` is the part of ``live`` that the endpoint may change. If ``live`` has no managed fields yet,
    ``before-first-apply`` becomes the owner of the fields in ``reached``. ``sent`` is the intent including the fields that the
    endpoint does not change. If even ``sent`` would change nothing, the manager's entry keeps its time; a new entry has no time.

    Raises ApplyRefusedError, UndeclaredFieldError and, unless ``force`` is true, ApplyConflict.
    """
    sent = _checked(sent if sent is not None else intent, lists, fresh=live is None)
    intent = _checked(intent, lists, fresh=live is None)
    start = plain(live) if live is not None else _empty_object(intent)
    own = Manager(Operation.APPLY, manager, "", subresource)
    managers = dict(managers_of(live)) if live is not None else {}
    if live is not None and not managers:
        unknown = Manager(Operation.UPDATE, BEFORE_FIRST_APPLY, find_str(intent, "apiVersion"), subresource)
        managers = dict(updated({}, None, live if reached is None else reached, unknown, now, lists))
    last = managers.get(own)
    wanted = fields_of(intent, lists)
    managers[own] = Owned(wanted, format_time(now), find_str(intent, "apiVersion"))
    result = _prune(merged(start, intent, lists), managers, last, lists)
    unchanged = same_value(start, result) and (sent == intent or same_value(start, merged(start, sent, lists)))
    managers = _take_fields(
        managers, own, start, result, lists, force=force, allowed=_kubectl_may_take(live, manager, lists)
    )
    managers[own] = replace(managers[own], fields=managers[own].fields.difference(UNTRACKED))
    if unchanged and live is not None:
        managers[own] = replace(managers[own], time=last.time if last is not None else "")
    return with_managers(result, {other: owned for other, owned in managers.items() if owned.fields})


def _take_fields(
    managers: Managers,
    own: Manager,
    before: JsonObject,
    after: JsonObject,
    lists: ListTypes,
    *,
    force: bool,
    allowed: FieldSet,
) -> dict[Manager, Owned]:
    """Return the managers after a change by the manager ``own``. All other managers lose the fields that the change adds,
    modifies or removes. Raises ApplyConflict if another manager would lose a field to ``own``, unless ``force`` is true or the
    field is in ``allowed``.
    """
    change = compare(before, after, lists)
    taken = change.added.union(change.modified)
    conflicts = {other: owned.fields.intersection(taken) for other, owned in sorted(managers.items()) if other != own}
    refused = [
        (str(other), path_text(path))
        for other, fields in conflicts.items()
        for path in fields.difference(allowed).paths()
    ]
    if refused and not force:
        raise ApplyConflict(tuple(sorted(refused, key=lambda conflict: conflict[0])))
    lost = change.removed
    return {
        other: owned
        if other == own
        else replace(owned, fields=owned.fields.difference(conflicts[other]).difference(lost))
        for other, owned in managers.items()
    }


def _prune(merged: JsonObject, managers: Managers, last: Owned | None, lists: ListTypes) -> JsonObject:
    """Return the object without the fields that the manager owned since its last apply, and that no manager owns now."""
    if last is None:
        return merged
    formerly = with_named_parents(last.fields, lists)
    pruned = remove_fields(merged, formerly, lists)
    owned = EMPTY
    for entry in managers.values():
        owned = owned.union(entry.fields)
    everything = with_named_parents(fields_of(merged, lists), lists)
    left = with_named_parents(fields_of(pruned, lists), lists)
    pruned = remove_fields(merged, everything.difference(left.union(with_named_parents(owned, lists))), lists)
    left = with_named_parents(fields_of(pruned, lists), lists)
    return remove_fields(merged, everything.difference(left).intersection(formerly), lists)


def remove_fields(obj: JsonObject, fields: FieldSet, lists: ListTypes) -> JsonObject:
    """Return the object without these fields; atomic values are kept whole."""
    kept = _removed(obj, fields, lists)
    return kept if isinstance(kept, dict) else {}


def _removed(value: JsonValue, fields: FieldSet, lists: ListTypes) -> JsonValue:
    lists = lists.of(value)
    if not fields or lists.is_whole or not value:
        return value
    if lists.relation in {Relation.SET, Relation.KEYED}:
        kept: list[JsonValue] = []
        for item in value if isinstance(value, list) else []:
            element = item_element(item, lists)
            if element not in fields.members:
                kept.append(_removed(item, fields.below(element), lists.item))
        return kept
    if not isinstance(value, dict):
        return value
    return {
        name: _removed(inner, fields.below(f"f:{name}"), lists.field(name))
        for name, inner in value.items()
        if f"f:{name}" not in fields.members
    }


def merged(live: JsonObject, intent: JsonObject, lists: ListTypes) -> JsonObject:
    """Return the intent merged into the live object, regardless of the owners of its fields."""
    found = _merge_values(live, intent, lists)
    return found if isinstance(found, dict) else {}


def _merge_values(live: JsonValue, intent: JsonValue, lists: ListTypes) -> JsonValue:
    """Return the intent merged into the live value, member by member and item by item where the merge rules allow it."""
    lists = lists.of(intent if intent is not None else live)
    if lists.is_whole or (not live and not intent):
        return intent
    if lists.relation in {Relation.SET, Relation.KEYED}:
        return _merge_lists(live if isinstance(live, list) else [], intent if isinstance(intent, list) else [], lists)
    if (live is not None and not isinstance(live, dict)) or (intent is not None and not isinstance(intent, dict)):
        return intent
    left: JsonObject = live or {}
    right: JsonObject = intent or {}
    merged = {
        name: _merge_values(value, right[name], lists.field(name)) if name in right else value
        for name, value in left.items()
    }
    return merged | {
        name: _merge_values(None, value, lists.field(name)) for name, value in right.items() if name not in left
    }


def _merge_lists(live: list[JsonValue], intent: list[JsonValue], lists: ListTypes) -> list[JsonValue]:
    """Return the items of both lists, merged by key.

    Items of the intent keep their order. Items that only the live list has stay before the items that they preceded.
    """
    lefts = [(item_element(item, lists), item) for item in live]
    rights = {element: items[-1] for element, items in by_element(intent, lists).items()}
    first_left: dict[str, JsonValue] = {}
    for element, item in lefts:
        first_left.setdefault(element, item)
    shared = [element for element in rights if element in first_left]
    merged: list[JsonValue] = []
    waiting = list(rights)
    next_shared = 0

    def take(element: str) -> None:
        waiting.remove(element)
        merged.append(_merge_values(first_left.get(element), rights[element], lists.item))

    for element, item in lefts:
        if element not in rights:
            merged.append(item)
        elif next_shared < len(shared) and element == shared[next_shared]:
            next_shared += 1
            while waiting[0] != element:
                take(waiting[0])
            take(element)
    for element in list(waiting):
        take(element)
    return merged


def _empty_object(intent: JsonObject) -> JsonObject:
    """Return the empty object with which the intent is merged if the apply creates an object."""
    return {"apiVersion": find(intent, "apiVersion"), "kind": find(intent, "kind")}


def place_of(intent: JsonObject) -> str:
    """Return the name of an intent's object in error messages: ``ns/name; apps/v1, Kind=Deployment``."""
    metadata = intent.get("metadata")
    namespace, name = (value if isinstance(value := find(metadata, key), str) else "" for key in ("namespace", "name"))
    version, kind = find_str(intent, "apiVersion"), find_str(intent, "kind")
    return f"{namespace}/{name}; {version if '/' in version else f'/{version}'}, Kind={kind}"


def _checked(intent: JsonObject, lists: ListTypes, *, fresh: bool) -> JsonObject:
    """Return the intent without the fields that only the server sets; in a new object (``fresh``), these fields are kept.

    Raises ApplyRefusedError for managed fields, and UndeclaredFieldError if the intent does not match the schema.
    """
    entries = find(intent, "metadata", "managedFields")
    if isinstance(entries, list) and all(map(_is_entry, entries)):
        raise ApplyRefusedError("metadata.managedFields must be nil")
    if wrong := all_type_problems(intent, lists):
        raise UndeclaredFieldError(f"failed to create typed patch object ({place_of(intent)}): {wrong}")
    metadata = {
        name: item for name, item in find_object(intent, "metadata").items() if fresh or name not in _SERVER_OWNED
    }
    return intent | {"metadata": metadata}


def _is_entry(value: JsonValue) -> bool:
    """Return whether a value has the form of an entry of managed fields."""
    time = find(value, "time")
    return isinstance(value, dict) and (time is None or (isinstance(time, str) and parse_time(time) is not None))


def _kubectl_may_take(live: JsonObject | None, manager: str, lists: ListTypes) -> FieldSet:
    """Return the fields that ``kubectl apply --server-side`` may take without a conflict: the fields of its last client-side
    apply.
    """
    text = find(live, "metadata", "annotations", LAST_APPLIED)
    if manager != KUBECTL or live is None or not isinstance(text, str):
        return EMPTY
    try:
        former = decode_json(text, max_bytes=MAX_LAST_APPLIED_BYTES, what=LAST_APPLIED)
    except JsonError:
        return EMPTY
    return fields_of(former, lists) if find(former, "apiVersion") == find(live, "apiVersion") else EMPTY
