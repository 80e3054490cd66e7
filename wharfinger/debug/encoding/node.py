"""The scheduler's nodes as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shapes; a key with ``?`` may be missing::

    scheduler: {nodes: {<name>: node}}
    node:      {version, order, state, decision: {kind, reason, message}, dependencies: needs, declared_order, run?, failed?,
                since?, lacks?: [{kind, name, state}], votes?: [{verdict, reason, message}],
                groups?: [{kind: anyOf | noneOf, name, members: needs}], dependents?: [<name>], subscriptions?: [<name>]}
    needs:     {<name>: {constraint, optional}}

``order`` is the effective order. An older daemon sends neither ``declared_order`` nor any of the keys after it.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find_int, find_list, find_object, find_str
from wharfinger.runtime.scheduler_details import DependencySnapshot, GroupSnapshot, NodeSnapshot

_GROUPS: Final = ("anyOf", "noneOf")
OWN_FIELDS: Final = frozenset({"name", "decision", "reason", "message", "dependencies", "groups", "declared_order"})
"""The fields of a node that this module encodes itself. ``name`` is the key of the node in JSON, ``declared_order`` is always
present, and the other fields have another shape in JSON.
"""


def nodes_to_json(nodes: Iterable[NodeSnapshot]) -> JsonObject:
    """Return all nodes of the scheduler as JSON."""
    return {"nodes": {node.name: node_to_json(node) for node in nodes}}


def nodes_from_json(value: JsonValue) -> tuple[NodeSnapshot, ...]:
    """Read all nodes from JSON, sorted by name. Raises ShapeError."""
    return tuple(_node_from_json(name, item) for name, item in sorted(find_object(value, "nodes").items()))


def node_to_json(node: NodeSnapshot) -> JsonObject:
    """Return one node as JSON, without its name, which is the key that it is stored under."""
    result = record_to_json(node, without=OWN_FIELDS)
    result["decision"] = {"kind": node.decision, "reason": node.reason, "message": node.message}
    result["dependencies"] = _needs_to_json(node.dependencies)
    result["declared_order"] = node.declared_order
    if node.groups:
        result["groups"] = [
            {"kind": each.kind, "name": each.name, "members": _needs_to_json(each.members)} for each in node.groups
        ]
    return result


def _node_from_json(name: str, value: JsonValue) -> NodeSnapshot:
    order = find_int(value, "order")
    own: dict[str, object] = {
        "name": name,
        "decision": find_str(value, "decision", "kind"),
        "reason": find_str(value, "decision", "reason"),
        "message": find_str(value, "decision", "message"),
        "dependencies": _needs_from_json(find_object(value, "dependencies")),
        "declared_order": find_int(value, "declared_order", default=order),
        "groups": tuple(_group_from_json(item) for item in find_list(value, "groups")),
    }
    return record_from_json(value, NodeSnapshot, "node", own)


def _needs_to_json(needs: Iterable[DependencySnapshot]) -> JsonObject:
    return {each.name: record_to_json(each, without={"name"}) for each in needs}


def _needs_from_json(value: JsonObject) -> tuple[DependencySnapshot, ...]:
    return tuple(
        record_from_json(item, DependencySnapshot, "dependencies", {"name": name})
        for name, item in sorted(value.items())
    )


def _group_from_json(value: JsonValue) -> GroupSnapshot:
    members = _needs_from_json(find_object(value, "members"))
    group = record_from_json(value, GroupSnapshot, "groups", {"members": members})
    if group.kind not in _GROUPS:
        raise ShapeError(f"groups: kind: {group.kind!r} is not one of {', '.join(_GROUPS)}")
    return group
