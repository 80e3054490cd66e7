"""Empty lists in fields that are always printed, such as ``rules`` of a Role: they become null in storage.

kube-apiserver stores built-in kinds as protobuf, in which an empty list is the same as no list. Managed fields still contain a
field with an empty list, because they are computed before the list becomes null. Empty lists in other fields are omitted when a
body is decoded (:mod:`~wharfinger.control_plane.kinds.typed_form`). Kinds of ``apiextensions.k8s.io`` and
``apiregistration.k8s.io`` are stored as JSON, and keep their empty lists.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation, builtin_list_types
from wharfinger.formats.json.value import JsonObject, JsonValue

_LISTS: Final = frozenset({Relation.ATOMIC_LIST, Relation.KEYED, Relation.SET})
_STORED_AS_JSON: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})


@dataclass(frozen=True, slots=True)
class Plan:
    """The lists of a struct that are null when empty (``names``), and the members that contain more such lists (``below``)."""

    names: frozenset[str]
    below: "dict[str, Plan]"


def with_null_lists(obj: JsonObject, group: str, version: str, kind: str) -> JsonObject:
    """Return the object with null in place of each empty list that storage does not keep. If there is no such list, return the
    same object.
    """
    plan = _plan_of(group, version, kind)
    if plan is None:
        return obj
    found = _nulled(obj, plan)
    return found if isinstance(found, dict) else obj


@cache
def _plan_of(group: str, version: str, kind: str) -> Plan | None:
    return None if group in _STORED_AS_JSON else _plan(builtin_list_types(group, version, kind), ())


def _plan(lists: ListTypes, above: tuple[str, ...]) -> Plan | None:
    while lists.relation in _LISTS or (lists.relation is Relation.MAP and not lists.fields):
        lists = lists.item
    if not lists.fields or lists.go_type in above:
        return None
    names = frozenset(
        name for name, value in lists.zero.items() if value is None and lists.field(name).relation in _LISTS
    )
    plans = {name: _plan(inner, (*above, lists.go_type)) for name, inner in lists.fields.items() if name != "metadata"}
    below = {name: plan for name, plan in plans.items() if plan is not None}
    return Plan(names, below) if names or below else None


def _nulled(value: JsonValue, plan: Plan) -> JsonValue:
    if isinstance(value, list):
        items = [_nulled(item, plan) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changed: JsonObject = {name: None for name in plan.names if value.get(name) == []}
    for name, deeper in plan.below.items():
        found = value.get(name)
        if found and (new := _nulled(found, deeper)) is not found:
            changed[name] = new
    return {**value, **changed} if changed else value
