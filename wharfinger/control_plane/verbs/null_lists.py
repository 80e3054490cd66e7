"""Empty lists that are always printed become null in storage, because kube-apiserver's storage format does not distinguish the
two. It stores built-in kinds as protobuf, where an empty list is the same as no list. An empty list in an ``omitempty`` field is
omitted (:mod:`~wharfinger.control_plane.kinds.typed_form`); one in a field that is always printed, such as ``rules`` of a Role,
is null after it has been stored. Managed fields still list that field, because they are computed before. The kinds of
``apiextensions.k8s.io`` and ``apiregistration.k8s.io`` are stored as JSON, and keep their empty lists.
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
    """The members of a struct that are null when empty, and the members that contain more such members (through lists and
    maps)."""

    names: frozenset[str]
    below: "dict[str, Plan]"


def with_null_lists(obj: JsonObject, group: str, version: str, kind: str) -> JsonObject:
    """Return the object as storage returns it; the same object if nothing differs."""
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
