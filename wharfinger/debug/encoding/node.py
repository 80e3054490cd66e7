"""The scheduler's nodes as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shapes (spec/runtime §4.9, with additions); absent fields are left out::

    scheduler: {nodes: {<name>: node}}
    node:      {version, order, state, decision: {kind, reason, message}, dependencies: needs, declared_order, run?, failed?,
                since?, lacks?: [{kind, name, state}], votes?: [{verdict, reason, message}],
                groups?: [{kind: anyOf | noneOf, name, members: needs}], dependents?: [<name>], subscriptions?: [<name>]}
    needs:     {<name>: {constraint, optional}}

``order`` is the effective order. A daemon that does not send ``declared_order`` sends none of the keys after it either.
"""

from collections.abc import Iterable
from typing import Final

from wharfinger.debug.fields import find_flag, find_texts, read_flag, read_time, time_text
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
    need_str,
)
from wharfinger.runtime.inspector import (
    DependencySnapshot,
    GroupSnapshot,
    LackSnapshot,
    NodeSnapshot,
    VoteSnapshot,
)

_GROUPS: Final = ("anyOf", "noneOf")


def nodes_to_json(nodes: Iterable[NodeSnapshot]) -> JsonObject:
    """Return all nodes of the scheduler as JSON."""
    return {"nodes": {node.name: node_to_json(node) for node in nodes}}


def nodes_from_json(value: JsonValue) -> tuple[NodeSnapshot, ...]:
    """Read all nodes from JSON, sorted by name. Raises ShapeError."""
    return tuple(_node_from_json(name, item) for name, item in sorted(find_object(value, "nodes").items()))


def node_to_json(node: NodeSnapshot) -> JsonObject:
    """Return one node as JSON, without its name, which is the key that it is stored under."""
    result: JsonObject = {
        "version": node.version,
        "order": node.order,
        "state": node.state,
        "decision": {"kind": node.decision, "reason": node.reason, "message": node.message},
        "dependencies": _needs_to_json(node.dependencies),
        "declared_order": node.declared_order,
    }
    if node.run:
        result["run"] = node.run
    if node.failed:
        result["failed"] = True
    if node.since is not None:
        result["since"] = time_text(node.since)
    if node.lacks:
        result["lacks"] = [{"kind": each.kind, "name": each.name, "state": each.state} for each in node.lacks]
    if node.votes:
        result["votes"] = [
            {"verdict": each.verdict, "reason": each.reason, "message": each.message} for each in node.votes
        ]
    if node.groups:
        result["groups"] = [
            {"kind": each.kind, "name": each.name, "members": _needs_to_json(each.members)} for each in node.groups
        ]
    if node.dependents:
        result["dependents"] = list(node.dependents)
    if node.subscriptions:
        result["subscriptions"] = list(node.subscriptions)
    return result


def _node_from_json(name: str, value: JsonValue) -> NodeSnapshot:
    order = find_int(value, "order")
    return NodeSnapshot(
        name=name,
        version=find_str(value, "version"),
        order=order,
        state=need_str(value, "state"),
        decision=find_str(value, "decision", "kind"),
        reason=find_str(value, "decision", "reason"),
        message=find_str(value, "decision", "message"),
        dependencies=_needs_from_json(find_object(value, "dependencies")),
        declared_order=find_int(value, "declared_order", default=order),
        run=find_int(value, "run"),
        failed=find_flag(value, "failed"),
        since=None if find(value, "since") is None else read_time(value, "since"),
        lacks=tuple(_lack_from_json(item) for item in find_list(value, "lacks")),
        votes=tuple(_vote_from_json(item) for item in find_list(value, "votes")),
        groups=tuple(_group_from_json(item) for item in find_list(value, "groups")),
        dependents=find_texts(value, "dependents"),
        subscriptions=find_texts(value, "subscriptions"),
    )


def _needs_to_json(needs: Iterable[DependencySnapshot]) -> JsonObject:
    return {each.name: {"constraint": each.constraint, "optional": each.optional} for each in needs}


def _needs_from_json(value: JsonObject) -> tuple[DependencySnapshot, ...]:
    return tuple(
        DependencySnapshot(each, find_str(item, "constraint"), read_flag(item, "optional"))
        for each, item in sorted(value.items())
    )


def _lack_from_json(value: JsonValue) -> LackSnapshot:
    kind = need_str(as_object(value, "lacks"), "kind")
    return LackSnapshot(kind, find_str(value, "name"), find_str(value, "state"))


def _vote_from_json(value: JsonValue) -> VoteSnapshot:
    verdict = need_str(as_object(value, "votes"), "verdict")
    return VoteSnapshot(verdict, find_str(value, "reason"), find_str(value, "message"))


def _group_from_json(value: JsonValue) -> GroupSnapshot:
    kind = need_str(as_object(value, "groups"), "kind")
    if kind not in _GROUPS:
        raise ShapeError(f"groups: kind: {kind!r} is none of {', '.join(_GROUPS)}")
    return GroupSnapshot(kind, find_str(value, "name"), _needs_from_json(find_object(value, "members")))
