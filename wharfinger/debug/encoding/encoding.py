"""Snapshots as JSON, and back: the format of the debug socket and of `-o json`.

Pure. Reading back what was written gives the same snapshot, so a client of the socket is as good an Inspector as the
daemon's own. Readers ignore keys that they do not know and name the keys that they miss, so an older command line can
inspect a newer daemon.

Shapes (spec/runtime §3 and §9.1). Every duration is also given in seconds. Packages, nodes of the scheduler and statistics
have modules of their own::

    queues:    {queues: {<name>: queue}}
    queue:     {length, tasks: [{index, name, lane, attempt, running, enqueued, enqueued_seconds,
                next_retry?, next_retry_seconds?, error?, cause?, parked?, waits_for?}]}      (no tasks: no key)
    answer:    {verdict: Valid | Invalid | Unknown, version?, problems?: [{path, message}], warnings?: [...], message?}
"""

from collections.abc import Iterable
from typing import assert_never

from wharfinger.debug.fields import duration, find_flag, read_flag, read_seconds, read_time, time_text
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
from wharfinger.formats.schemas.problems import Problem
from wharfinger.runtime.inspector import (
    DaemonSnapshot,
    InvalidSettings,
    QueueSnapshot,
    SettingsAnswer,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)


def daemon_to_json(daemon: DaemonSnapshot) -> JsonObject:
    """Return the daemon as JSON."""
    return {
        "version": daemon.version,
        "pid": daemon.pid,
        "started": time_text(daemon.started),
        "ready": daemon.ready,
        "draining": daemon.draining,
        "standby": daemon.standby,
        "cluster": daemon.cluster,
        "packages": daemon.packages,
    }


def daemon_from_json(value: JsonValue) -> DaemonSnapshot:
    """Read the daemon from JSON. Raises ShapeError."""
    return DaemonSnapshot(
        version=find_str(value, "version"),
        pid=find_int(value, "pid"),
        started=read_time(value, "started"),
        ready=read_flag(value, "ready"),
        cluster=find_str(value, "cluster"),
        packages=find_int(value, "packages"),
        draining=read_flag(value, "draining"),
        standby=find_str(value, "standby"),
    )


def queues_to_json(queues: Iterable[QueueSnapshot]) -> JsonObject:
    """Return all queues as JSON."""
    return {"queues": {queue.name: queue_to_json(queue) for queue in queues}}


def queues_from_json(value: JsonValue) -> tuple[QueueSnapshot, ...]:
    """Read all queues from JSON, sorted by name. Raises ShapeError."""
    return tuple(queue_from_json(name, item) for name, item in sorted(find_object(value, "queues").items()))


def queue_to_json(queue: QueueSnapshot) -> JsonObject:
    """Return one queue as JSON, without its name, which is the key that it is stored under."""
    result: JsonObject = {"length": len(queue.tasks)}
    if queue.tasks:
        result["tasks"] = [_task_to_json(task) for task in queue.tasks]
    return result


def queue_from_json(name: str, value: JsonValue) -> QueueSnapshot:
    """Read one queue from JSON. Raises ShapeError."""
    return QueueSnapshot(name, tuple(_task_from_json(item) for item in find_list(value, "tasks")))


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
    if task.parked:
        result["parked"] = True
    if task.waits_for:
        result["waits_for"] = task.waits_for
    return result


def _task_from_json(value: JsonValue) -> TaskSnapshot:
    retry = find(value, "next_retry_seconds")
    return TaskSnapshot(
        index=find_int(value, "index"),
        name=find_str(value, "name"),
        lane=find_str(value, "lane"),
        enqueued_s_ago=read_seconds(find(value, "enqueued_seconds"), "enqueued_seconds"),
        attempt=find_int(value, "attempt"),
        running=read_flag(value, "running"),
        retry_in_s=None if retry is None else read_seconds(retry, "next_retry_seconds"),
        error=find_str(value, "error"),
        cause=find_str(value, "cause"),
        parked=find_flag(value, "parked"),
        waits_for=find_str(value, "waits_for"),
    )


def answer_to_json(answer: SettingsAnswer) -> JsonObject:
    """Return the verdict on some settings as JSON."""
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
