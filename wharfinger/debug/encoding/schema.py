"""The JSON Schema of the answers of the debug socket, made from the types of the snapshots that it sends.

A record becomes an object with the record's fields. A field with a default is not required, because an answer leaves it out
if it has its default value. Documents whose shape differs from their snapshots have types of their own here (see
:mod:`~wharfinger.debug.encoding.encoding`). Objects may have further keys, because a newer daemon may add some.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final, cast, get_args, get_origin

import msgspec

from wharfinger.debug.addresses import (
    DIFFERENCE,
    EVENTS,
    GLOBAL_DUMP,
    HISTORY,
    LOGS,
    MEMORY,
    PROFILE,
    REQUIREMENTS,
    RESOURCES,
    SNAPSHOTS,
    TASKS,
    VALIDATE,
    WHY,
)
from wharfinger.debug.encoding.node import OWN_FIELDS as NODE_FIELDS
from wharfinger.debug.encoding.package import OWN_FIELDS as PACKAGE_FIELDS
from wharfinger.debug.encoding.package import STATUS_FIELDS
from wharfinger.debug.encoding.records import record_fields
from wharfinger.debug.profile.profile import ProfileSnapshot
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.daemon_details import (
    DaemonSnapshot,
    MemorySnapshot,
    RequirementsSnapshot,
    SlotsSnapshot,
    StatisticsSnapshot,
    TaskCounts,
    WarmPoolSnapshot,
)
from wharfinger.runtime.inspector import (
    HistorySnapshot,
    HookSnapshot,
    PackageSnapshot,
    RepositorySnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DifferenceSnapshot,
    LogSnapshot,
    ResourceSnapshot,
)
from wharfinger.runtime.scheduler_details import DependencySnapshot, ExplanationSnapshot, NodeSnapshot

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
VERSION: Final = "v1"
_REF: Final = "#/$defs/{name}"

_Fields = Mapping[str, tuple[object, bool]]
"""The fields of an object: the type of each, and whether it is required."""


def api_schema() -> JsonObject:
    """Return the schema of the answer of each path, and the definitions that these schemas refer to."""
    components = cast(
        "tuple[list[JsonObject], dict[str, JsonObject]]",
        msgspec.json.schema_components(list(_answers().values()), schema_hook=_any_json, ref_template=_REF),
    )
    found, definitions = components
    paths: JsonObject = {
        path: {"anyOf": [answer, {"type": "null"}]} for path, answer in zip(_answers(), found, strict=True)
    }
    return {
        "$schema": DIALECT,
        "title": f"Answers of Wharfinger's debug socket, {VERSION}",
        "description": "`paths` has the schema of the answer of each path. An answer is null if it is not known, or if there is "
        "nothing of the requested name.",
        "paths": paths,
        "$defs": cast("JsonValue", definitions),
    }


@cache
def _answers() -> Mapping[str, object]:
    queue = _object("Queue", {"length": (int, True), "tasks": (_array(_task()), False)})
    package, node = _package(queue), _node()
    packages = _object("Packages", {"apps": (_mapping(package), True), "modules": (_mapping(package), True)})
    repository = _record(RepositorySnapshot, without=("name",))
    pool = _record(WarmPoolSnapshot, without=("name",))
    needs = {"path": (str, True), "message": (str, True)}
    problem = _object("Problem", needs)
    verdict = _object(
        "SettingsVerdict",
        {
            "verdict": (str, True),
            "version": (str, False),
            "problems": (_array(problem), False),
            "warnings": (_array(problem), False),
            "message": (str, False),
            "why": (str, False),
        },
    )
    return {
        "/api/v1/daemon": _record(DaemonSnapshot),
        "/api/v1/statistics": _statistics(),
        MEMORY: _record(MemorySnapshot),
        "/api/v1/packages/dump": packages,
        "/api/v1/packages/dump?name": package,
        GLOBAL_DUMP: package,
        "/api/v1/queues/dump": _map("Queues", "queues", queue),
        "/api/v1/pools/dump": _map("Pools", "pools", pool),
        "/api/v1/repositories/dump": _map("Repositories", "repositories", repository),
        "/api/v1/scheduler/dump": _map("Nodes", "nodes", node),
        "/api/v1/scheduler/dump?name": node,
        REQUIREMENTS: _record(RequirementsSnapshot),
        WHY: _record(ExplanationSnapshot),
        HISTORY: _record(HistorySnapshot),
        RESOURCES: _list("Resources", "resources", _record(ResourceSnapshot)),
        EVENTS: _list("Events", "events", _record(ClusterEventSnapshot)),
        LOGS: _record(LogSnapshot),
        DIFFERENCE: _record(DifferenceSnapshot),
        f"{SNAPSHOTS}{{name}}": dict[str, dict[str, list[dict[str, object]]]],
        PROFILE: _record(ProfileSnapshot),
        TASKS: _list("Tasks", "tasks", _record(DaemonTaskSnapshot)),
        f"{VALIDATE}{{name}}": verdict,
    }


def _package(queue: type) -> type:
    place = {"version": (str, True), "digest": (str, True)}
    own = PACKAGE_FIELDS.union(STATUS_FIELDS)
    every = _fields(PackageSnapshot)
    return _object(
        "Package",
        {
            **{key: found for key, found in every.items() if key not in own},
            "labels": (dict[str, object], False),
            "definition": (_object("Definition", {"name": (str, True), **place}), True),
            "installed": (_object("Installed", place), True),
            "status": (_object("PackageStatus", {key: every[key] for key in STATUS_FIELDS}), True),
            "settings": (dict[str, object], True),
            "values": (dict[str, object], True),
            "hooks": (_array(_record(HookSnapshot)), True),
            "queue": (queue, True),
            "crds": (_object("Definitions", {"established": (bool, True), "kinds": (list[str], True)}), False),
            "unmatched_overrides": (list[str], False),
        },
    )


def _task() -> type:
    return _object("Task", {**_fields(TaskSnapshot), "enqueued": (str, True), "next_retry": (str, False)})


def _node() -> type:
    needs = _mapping(_record(DependencySnapshot, without=("name",)))
    group = _object("Group", {"kind": (str, True), "name": (str, True), "members": (needs, True)})
    decision = _object("Decision", dict.fromkeys(("kind", "reason", "message"), (str, True)))
    return _object(
        "Node",
        {
            **{key: found for key, found in _fields(NodeSnapshot).items() if key not in NODE_FIELDS},
            "decision": (decision, True),
            "dependencies": (needs, True),
            "declared_order": (int, True),
            "groups": (_array(group), False),
        },
    )


def _statistics() -> type:
    slots = _mapping(_record(SlotsSnapshot, without=("kind",)))
    rest = {key: found for key, found in _fields(StatisticsSnapshot).items() if key not in {"tasks", "slots"}}
    return _object("Statistics", {"queues": (_record(TaskCounts), True), "slots": (slots, True), **rest})


def _map(name: str, key: str, item: type) -> type:
    return _object(name, {key: (_mapping(item), True)})


def _list(name: str, key: str, item: type) -> type:
    return _object(name, {key: (_array(item), True)})


@cache
def _record(kind: "type[DataclassInstance]", *, without: tuple[str, ...] = ()) -> type:
    found = {key: each for key, each in _fields(kind).items() if key not in without}
    return _object(kind.__name__.removesuffix("Snapshot"), found)


def _fields(kind: "type[DataclassInstance]") -> _Fields:
    return {each.key: (_wire(each.hint), each.default is MISSING) for each in record_fields(kind)}


def _wire(hint: object) -> object:
    """Return the type of a field in JSON."""
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return _array(_wire(arguments[0]))
    if get_origin(hint) is types.UnionType:  # `X | None`; a value of None is left out
        return _wire(arguments[0])
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return _record(hint)
    return datetime if hint is datetime else hint


def _object(name: str, fields: _Fields) -> type:
    """Return a type with these keys. Its fields are named ``f<number>``, because a key need not be a Python identifier."""
    made = [
        (f"f{number}", kind, msgspec.field(name=key) if required else msgspec.field(name=key, default=msgspec.UNSET))
        for number, (key, (kind, required)) in enumerate(sorted(fields.items(), key=lambda each: not each[1][1]))
    ]
    return cast("type", msgspec.defstruct(name, made))


def _array(item: object) -> object:
    return types.GenericAlias(list, (item,))


def _mapping(item: object) -> object:
    return types.GenericAlias(dict, (str, item))


def _any_json(_kind: type) -> JsonObject:
    """Return the schema of any JSON value."""
    return {"description": "any JSON value"}
