"""Snapshots as JSON, and back: what goes over the debug socket and what `-o json` prints.

Pure. Reading back what was written gives the same snapshot, so that a client of the socket is as good an Inspector as the
daemon's own. Readers ignore keys they do not know and name the ones they miss, so that an older command line can look into
a newer daemon.

Shapes (spec/runtime §3 and §9.1; every time is also there in seconds)::

    packages:  {apps: {<name>: package}, modules: {<name>: package}}
    package:   {name, kind, namespace, definition: {name, version, digest}, installed: {version, digest}, release_revision,
                status: {state, message, tip, conditions: [...]}, settings, values,
                hooks: [{name, bindings, runs, last_run?, last_error?}], queue: queue}
    queues:    {queues: {<name>: queue}}
    queue:     {length, tasks: [{index, name, lane, attempt, running, enqueued, enqueued_seconds,
                next_retry?, next_retry_seconds?, error?, cause?}]}      (no tasks: no key)
    scheduler: {nodes: {<name>: node}}
    answer:    {verdict: Valid | Invalid | Unknown, version?, problems?: [{path, message}], warnings?: [...], message?}
    node:      {version, order, state, decision: {kind, reason, message}, dependencies: {<name>: {constraint, optional}}}

``definition`` is what is wanted. `PackageSnapshot.secrets` is left out.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from wharfinger.formats.json_value import (
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
    type_name,
)
from wharfinger.formats.openapi_schema import Problem
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    DaemonSnapshot,
    DependencySnapshot,
    HookSnapshot,
    InvalidSettings,
    NodeSnapshot,
    PackageSnapshot,
    QueueSnapshot,
    SettingsAnswer,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)


def daemon_to_json(daemon: DaemonSnapshot) -> JsonObject:
    """The daemon as JSON."""
    return {
        "version": daemon.version,
        "pid": daemon.pid,
        "started": _time(daemon.started),
        "ready": daemon.ready,
        "draining": daemon.draining,
        "cluster": daemon.cluster,
        "packages": daemon.packages,
    }


def daemon_from_json(value: JsonValue) -> DaemonSnapshot:
    """The daemon from JSON. Raises ShapeError."""
    return DaemonSnapshot(
        version=find_str(value, "version"),
        pid=find_int(value, "pid"),
        started=_read_time(value, "started"),
        ready=_flag(value, "ready"),
        cluster=find_str(value, "cluster"),
        packages=find_int(value, "packages"),
        draining=_flag(value, "draining"),
    )


def packages_to_json(packages: Iterable[PackageSnapshot]) -> JsonObject:
    """All packages, applications and modules apart."""
    apps: JsonObject = {}
    modules: JsonObject = {}
    for package in packages:
        (modules if package.kind == "Module" else apps)[package.name] = package_to_json(package)
    return {"apps": apps, "modules": modules}


def packages_from_json(value: JsonValue) -> tuple[PackageSnapshot, ...]:
    """All packages, sorted by name. Raises ShapeError."""
    both = [*find_object(value, "apps").values(), *find_object(value, "modules").values()]
    return tuple(sorted((package_from_json(item) for item in both), key=lambda package: package.name))


def package_to_json(package: PackageSnapshot) -> JsonObject:
    """One package as JSON."""
    return {
        "name": package.name,
        "kind": package.kind,
        "namespace": package.namespace,
        "definition": {"name": package.package, "version": package.version, "digest": package.digest},
        "installed": {"version": package.installed_version, "digest": package.installed_digest},
        "release_revision": package.release_revision,
        "status": {
            "state": package.state,
            "message": package.message,
            "tip": package.tip,
            "conditions": [_condition_to_json(condition) for condition in package.conditions],
        },
        "settings": package.settings,
        "values": package.values,
        "hooks": [_hook_to_json(hook) for hook in package.hooks],
        "queue": queue_to_json(package.queue),
    }


def package_from_json(value: JsonValue) -> PackageSnapshot:
    """One package from JSON. Raises ShapeError."""
    name = need_str(value, "name")
    return PackageSnapshot(
        name=name,
        kind=need_str(value, "kind"),
        namespace=find_str(value, "namespace"),
        package=find_str(value, "definition", "name"),
        version=find_str(value, "definition", "version"),
        digest=find_str(value, "definition", "digest"),
        release_revision=find_int(value, "release_revision"),
        state=find_str(value, "status", "state"),
        message=find_str(value, "status", "message"),
        tip=find_str(value, "status", "tip"),
        settings=find_object(value, "settings"),
        conditions=tuple(_condition_from_json(item) for item in find_list(value, "status", "conditions")),
        queue=queue_from_json(name, find(value, "queue")),
        installed_version=find_str(value, "installed", "version"),
        installed_digest=find_str(value, "installed", "digest"),
        values=find_object(value, "values"),
        hooks=tuple(_hook_from_json(item) for item in find_list(value, "hooks")),
    )


def queues_to_json(queues: Iterable[QueueSnapshot]) -> JsonObject:
    """All queues as JSON."""
    return {"queues": {queue.name: queue_to_json(queue) for queue in queues}}


def queues_from_json(value: JsonValue) -> tuple[QueueSnapshot, ...]:
    """All queues, sorted by name. Raises ShapeError."""
    return tuple(queue_from_json(name, item) for name, item in sorted(find_object(value, "queues").items()))


def queue_to_json(queue: QueueSnapshot) -> JsonObject:
    """One queue as JSON; its name is the key it is kept under."""
    result: JsonObject = {"length": len(queue.tasks)}
    if queue.tasks:
        result["tasks"] = [_task_to_json(task) for task in queue.tasks]
    return result


def queue_from_json(name: str, value: JsonValue) -> QueueSnapshot:
    """One queue from JSON. Raises ShapeError."""
    return QueueSnapshot(name, tuple(_task_from_json(item) for item in find_list(value, "tasks")))


def nodes_to_json(nodes: Iterable[NodeSnapshot]) -> JsonObject:
    """All nodes of the scheduler as JSON."""
    return {"nodes": {node.name: node_to_json(node) for node in nodes}}


def nodes_from_json(value: JsonValue) -> tuple[NodeSnapshot, ...]:
    """All nodes, sorted by name. Raises ShapeError."""
    return tuple(_node_from_json(name, item) for name, item in sorted(find_object(value, "nodes").items()))


def node_to_json(node: NodeSnapshot) -> JsonObject:
    """One node as JSON; its name is the key it is kept under."""
    return {
        "version": node.version,
        "order": node.order,
        "state": node.state,
        "decision": {"kind": node.decision, "reason": node.reason, "message": node.message},
        "dependencies": {
            each.name: {"constraint": each.constraint, "optional": each.optional} for each in node.dependencies
        },
    }


def duration(seconds: float) -> str:
    """Seconds as people read them: ``250ms``, ``12.3s``, ``4m05s``, ``3h02m``, ``2d07h``; negative ones have a minus."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def _node_from_json(name: str, value: JsonValue) -> NodeSnapshot:
    return NodeSnapshot(
        name=name,
        version=find_str(value, "version"),
        order=find_int(value, "order"),
        state=need_str(value, "state"),
        decision=find_str(value, "decision", "kind"),
        reason=find_str(value, "decision", "reason"),
        message=find_str(value, "decision", "message"),
        dependencies=tuple(
            DependencySnapshot(each, find_str(item, "constraint"), _flag(item, "optional"))
            for each, item in sorted(find_object(value, "dependencies").items())
        ),
    )


def _hook_to_json(hook: HookSnapshot) -> JsonObject:
    result: JsonObject = {"name": hook.name, "bindings": list(hook.bindings), "runs": hook.runs}
    if hook.last_run is not None:
        result["last_run"] = _time(hook.last_run)
    if hook.last_error:
        result["last_error"] = hook.last_error
    return result


def _hook_from_json(value: JsonValue) -> HookSnapshot:
    return HookSnapshot(
        name=need_str(as_object(value, "hook"), "name"),
        bindings=tuple(_text(item, "bindings") for item in find_list(value, "bindings")),
        runs=find_int(value, "runs"),
        last_run=None if find(value, "last_run") is None else _read_time(value, "last_run"),
        last_error=find_str(value, "last_error"),
    )


def _task_to_json(task: TaskSnapshot) -> JsonObject:
    result: JsonObject = {
        "index": task.index,
        "name": task.name,
        "lane": task.lane,
        "attempt": task.attempt,
        "running": task.running,
        "enqueued": duration(task.enqueued_s_ago),
        "enqueued_seconds": task.enqueued_s_ago,
    }
    if task.retry_in_s is not None:
        result["next_retry"] = duration(task.retry_in_s)
        result["next_retry_seconds"] = task.retry_in_s
    if task.error:
        result["error"] = task.error
    if task.cause:
        result["cause"] = task.cause
    return result


def _task_from_json(value: JsonValue) -> TaskSnapshot:
    retry = find(value, "next_retry_seconds")
    return TaskSnapshot(
        index=find_int(value, "index"),
        name=find_str(value, "name"),
        lane=find_str(value, "lane"),
        enqueued_s_ago=_seconds(find(value, "enqueued_seconds"), "enqueued_seconds"),
        attempt=find_int(value, "attempt"),
        running=_flag(value, "running"),
        retry_in_s=None if retry is None else _seconds(retry, "next_retry_seconds"),
        error=find_str(value, "error"),
        cause=find_str(value, "cause"),
    )


def _condition_to_json(condition: ConditionSnapshot) -> JsonObject:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": _time(condition.last_transition),
    }


def _condition_from_json(value: JsonValue) -> ConditionSnapshot:
    return ConditionSnapshot(
        type=need_str(as_object(value, "condition"), "type"),
        status=find_str(value, "status"),
        reason=find_str(value, "reason"),
        message=find_str(value, "message"),
        last_transition=_read_time(value, "lastTransitionTime"),
    )


def answer_to_json(answer: SettingsAnswer) -> JsonObject:
    """What is to be said of settings."""
    match answer:
        case ValidSettings(version, warnings):
            return {"verdict": "Valid", "version": version, "problems": [], "warnings": _problems(warnings)}
        case InvalidSettings(version, problems, warnings):
            listed = {"problems": _problems(problems), "warnings": _problems(warnings)}
            return {"verdict": "Invalid", "version": version, **listed}
        case UnknownSettings(why):
            return {"verdict": "Unknown", "message": why}
        case _:
            assert_never(answer)


def answer_from_json(value: JsonValue) -> SettingsAnswer:
    """Read `answer_to_json` back. Raises ShapeError."""
    verdict = need_str(as_object(value, "answer"), "verdict")
    match verdict:
        case "Valid":
            return ValidSettings(find_str(value, "version"), _read_problems(value, "warnings"))
        case "Invalid":
            version, problems = find_str(value, "version"), _read_problems(value, "problems")
            return InvalidSettings(version, problems, _read_problems(value, "warnings"))
        case "Unknown":
            return UnknownSettings(find_str(value, "message"))
    raise ShapeError(f"verdict: {verdict!r} is none of Valid, Invalid, Unknown")


def _problems(problems: Iterable[Problem]) -> list[JsonValue]:
    return [{"path": each.path, "message": each.message} for each in problems]


def _read_problems(value: JsonValue, key: str) -> tuple[Problem, ...]:
    entries = (as_object(each, key) for each in find_list(value, key))
    return tuple(Problem(find_str(each, "path"), find_str(each, "message")) for each in entries)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _read_time(value: JsonValue, key: str) -> datetime:
    text = need_str(value, key)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ShapeError(f"{key}: {text!r} is not a time") from error
    if moment.tzinfo is None:
        raise ShapeError(f"{key}: {text!r} has no time zone")
    return moment.astimezone(UTC)


def _text(value: JsonValue, what: str) -> str:
    if not isinstance(value, str):
        raise ShapeError(f"{what}: expected a string, found {type_name(value)}")
    return value


def _seconds(value: JsonValue, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(f"{what}: expected a number, found {type_name(value)}")
    return float(value)


def _flag(value: JsonValue, key: str) -> bool:
    found = find(value, key)
    if not isinstance(found, bool):
        raise ShapeError(f"{key}: expected a boolean, found {type_name(found)}")
    return found
