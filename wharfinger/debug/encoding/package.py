"""Packages as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shapes; absent fields are left out::

    packages:  {apps: {<name>: package}, modules: {<name>: package}}
    package:   {name, kind, namespace, definition: {name, version, digest}, installed: {version, digest}, release_revision,
                status: {state, message, tip, conditions: [...], suspended?, maintenance?, progress?, warnings?: [...]},
                settings, values, hooks: [{name, bindings, runs, last_run?, last_error?, waiting?, reduced?}], queue: queue,
                waits_for?: [...], operations?: [{operation, completed, in_flight?, interrupted?, earlier?}],
                monitors?: [monitor], crds?: {established, kinds}, unmatched_overrides?: [...],
                urls?: [...], drift?: [...], failing?: [...]}
    progress:  {completed, remaining, waiting_for}
    monitor:   {hook, binding, listed, locked, objects, watches, waiting, events, dropped, last_error?}

``definition`` is the wanted version. `PackageSnapshot.secrets` is never encoded.
"""

from collections.abc import Iterable

from wharfinger.debug.encoding.encoding import queue_from_json, queue_to_json
from wharfinger.debug.fields import find_flag, find_texts, read_flag, read_time, time_text
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
    need_str,
)
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    HookSnapshot,
    MonitorSnapshot,
    OperationSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
)


def packages_to_json(packages: Iterable[PackageSnapshot]) -> JsonObject:
    """Return all packages as JSON, Applications and Modules separately."""
    apps: JsonObject = {}
    modules: JsonObject = {}
    for package in packages:
        (modules if package.kind == "Module" else apps)[package.name] = package_to_json(package)
    return {"apps": apps, "modules": modules}


def packages_from_json(value: JsonValue) -> tuple[PackageSnapshot, ...]:
    """Read all packages from JSON, sorted by name. Raises ShapeError."""
    both = [*find_object(value, "apps").values(), *find_object(value, "modules").values()]
    return tuple(sorted((package_from_json(item) for item in both), key=lambda package: package.name))


def package_to_json(package: PackageSnapshot) -> JsonObject:
    """Return one package as JSON."""
    return {
        "name": package.name,
        "kind": package.kind,
        "namespace": package.namespace,
        "definition": {"name": package.package, "version": package.version, "digest": package.digest},
        "installed": {"version": package.installed_version, "digest": package.installed_digest},
        "release_revision": package.release_revision,
        "status": _status_to_json(package),
        "settings": package.settings,
        "values": package.values,
        "hooks": [_hook_to_json(hook) for hook in package.hooks],
        "queue": queue_to_json(package.queue),
        **_work_to_json(package),
    }


def package_from_json(value: JsonValue) -> PackageSnapshot:
    """Read one package from JSON. Raises ShapeError."""
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
        suspended=find_flag(value, "status", "suspended"),
        maintenance=find_str(value, "status", "maintenance"),
        progress=_progress_from_json(find(value, "status", "progress")),
        warnings=find_texts(value, "status", "warnings"),
        unmatched=find_texts(value, "unmatched_overrides"),
        urls=find_texts(value, "urls"),
        drift=find_texts(value, "drift"),
        failing=find_texts(value, "failing"),
        crds=_crds_from_json(find(value, "crds")),
        waits_for=find_texts(value, "waits_for"),
        operations=tuple(_operation_from_json(item) for item in find_list(value, "operations")),
        monitors=tuple(_monitor_from_json(item) for item in find_list(value, "monitors")),
    )


def _hook_to_json(hook: HookSnapshot) -> JsonObject:
    result: JsonObject = {"name": hook.name, "bindings": list(hook.bindings), "runs": hook.runs}
    if hook.last_run is not None:
        result["last_run"] = time_text(hook.last_run)
    if hook.last_error:
        result["last_error"] = hook.last_error
    if hook.waiting:
        result["waiting"] = hook.waiting
    if hook.reduced:
        result["reduced"] = hook.reduced
    return result


def _hook_from_json(value: JsonValue) -> HookSnapshot:
    return HookSnapshot(
        name=need_str(as_object(value, "hook"), "name"),
        bindings=find_texts(value, "bindings"),
        runs=find_int(value, "runs"),
        last_run=None if find(value, "last_run") is None else read_time(value, "last_run"),
        last_error=find_str(value, "last_error"),
        waiting=find_int(value, "waiting"),
        reduced=find_int(value, "reduced"),
    )


def _condition_to_json(condition: ConditionSnapshot) -> JsonObject:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": time_text(condition.last_transition),
    }


def _condition_from_json(value: JsonValue) -> ConditionSnapshot:
    return ConditionSnapshot(
        type=need_str(as_object(value, "condition"), "type"),
        status=find_str(value, "status"),
        reason=find_str(value, "reason"),
        message=find_str(value, "message"),
        last_transition=read_time(value, "lastTransitionTime"),
    )


def _status_to_json(package: PackageSnapshot) -> JsonObject:
    result: JsonObject = {
        "state": package.state,
        "message": package.message,
        "tip": package.tip,
        "conditions": [_condition_to_json(condition) for condition in package.conditions],
    }
    if package.suspended:
        result["suspended"] = True
    if package.maintenance:
        result["maintenance"] = package.maintenance
    if (progress := package.progress) is not None:
        waiting_for: list[JsonValue] = list(progress.waiting_for)
        result["progress"] = {
            "completed": progress.completed,
            "remaining": progress.remaining,
            "waiting_for": waiting_for,
        }
    if package.warnings:
        result["warnings"] = list(package.warnings)
    return result


def _work_to_json(package: PackageSnapshot) -> JsonObject:
    """Return the optional keys: work in progress and its results."""
    result: JsonObject = {}
    if package.waits_for:
        result["waits_for"] = list(package.waits_for)
    if package.operations:
        result["operations"] = [_operation_to_json(operation) for operation in package.operations]
    if package.monitors:
        result["monitors"] = [_monitor_to_json(monitor) for monitor in package.monitors]
    if package.crds is None or package.crds:
        result["crds"] = {"established": package.crds is not None, "kinds": list(package.crds or ())}
    if package.unmatched:
        result["unmatched_overrides"] = list(package.unmatched)
    if package.urls:
        result["urls"] = list(package.urls)
    if package.failing:
        result["failing"] = list(package.failing)
    if package.drift:
        result["drift"] = list(package.drift)
    return result


def _progress_from_json(value: JsonValue) -> ProgressSnapshot | None:
    if value is None:
        return None
    waiting_for = find_texts(as_object(value, "progress"), "waiting_for")
    return ProgressSnapshot(find_int(value, "completed"), find_int(value, "remaining"), waiting_for)


def _crds_from_json(value: JsonValue) -> tuple[str, ...] | None:
    if value is None:
        return ()
    kinds = find_texts(as_object(value, "crds"), "kinds")
    return kinds if read_flag(value, "established") else None


def _operation_to_json(operation: OperationSnapshot) -> JsonObject:
    result: JsonObject = {"operation": operation.operation, "completed": list(operation.completed)}
    if operation.in_flight:
        result["in_flight"] = list(operation.in_flight)
    if operation.interrupted:
        result["interrupted"] = list(operation.interrupted)
    if operation.earlier:
        result["earlier"] = True
    return result


def _operation_from_json(value: JsonValue) -> OperationSnapshot:
    return OperationSnapshot(
        operation=need_str(as_object(value, "operation"), "operation"),
        completed=find_texts(value, "completed"),
        in_flight=find_texts(value, "in_flight"),
        interrupted=find_texts(value, "interrupted"),
        earlier=find_flag(value, "earlier"),
    )


def _monitor_to_json(monitor: MonitorSnapshot) -> JsonObject:
    result: JsonObject = {
        "hook": monitor.hook,
        "binding": monitor.binding,
        "listed": monitor.listed,
        "locked": monitor.locked,
        "objects": monitor.objects,
        "watches": monitor.watches,
        "waiting": monitor.waiting,
        "events": monitor.events,
        "dropped": monitor.dropped,
    }
    if monitor.last_error:
        result["last_error"] = monitor.last_error
    return result


def _monitor_from_json(value: JsonValue) -> MonitorSnapshot:
    return MonitorSnapshot(
        hook=need_str(as_object(value, "monitor"), "hook"),
        binding=find_str(value, "binding"),
        listed=read_flag(value, "listed"),
        locked=read_flag(value, "locked"),
        objects=find_int(value, "objects"),
        watches=find_int(value, "watches"),
        waiting=find_int(value, "waiting"),
        events=find_int(value, "events"),
        dropped=find_int(value, "dropped"),
        last_error=find_str(value, "last_error"),
    )
