"""The snapshots of :mod:`wharfinger.runtime.inspector` as JSON, and back: the format of the debug socket and of `-o json`.

Pure. Reading back what was written gives the same snapshot, so a client of the socket can replace the daemon's own Inspector.
Readers ignore unknown keys and report missing keys by name, so an older command line can inspect a newer daemon.

The daemon, explanations, and the parts of packages, nodes and statistics are records
(:mod:`wharfinger.debug.encoding.records`). The following shapes differ from their snapshots. A key with ``?`` may be missing. A
duration that is written for people has a second key with the number of seconds::

    queues:    {queues: {<name>: queue}}
    pools:     {pools: {<name>: {state, size, ready, reserved, waiting, started, conflicts, failed, expired, refused, restarts,
                problem?, kind?, starting?, claimed?, memory_bytes?, memory_limit_bytes?}}}
    repositories: {repositories: {<name>: {source, ready, reason?, message?, scanned?, users?, labels?: [...],
                packages?: [{package, versions?, channels?, detailed?: [{version, digest?, channels?, description?, kubernetes?,
                changelog?, deprecated?, unreadable?}], problem?}]}}}
    queue:     {length, tasks: [{index, name, lane, attempt, running, enqueued, enqueued_seconds,
                next_retry?, next_retry_seconds?, error?, cause?, parked?, waits_for?}]}      (only length if there are no tasks)
    answer:    {verdict: Valid | Invalid | Unknown, version?, problems?: [{path, message}], warnings?: [...], message?}
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, assert_never

from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.debug.fields import duration
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find_list, find_object, need_str
from wharfinger.runtime.inspector import (
    InvalidSettings,
    QueueSnapshot,
    RepositorySnapshot,
    SettingsAnswer,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)

if TYPE_CHECKING:  # at run time, only a list of pools needs this module
    from wharfinger.runtime.daemon_details import WarmPoolSnapshot

_VERDICTS: Final = {"Valid": ValidSettings, "Invalid": InvalidSettings, "Unknown": UnknownSettings}


def queues_to_json(queues: Iterable[QueueSnapshot]) -> JsonObject:
    """Return all queues as JSON."""
    return {"queues": {queue.name: queue_to_json(queue) for queue in queues}}


def pools_to_json(pools: "Iterable[WarmPoolSnapshot]") -> JsonObject:
    """Return all pools as JSON."""
    return {"pools": {pool.name: record_to_json(pool, without={"name"}) for pool in pools}}


def pools_from_json(value: JsonValue) -> "tuple[WarmPoolSnapshot, ...]":
    """Read all pools from JSON, sorted by name. Raises ShapeError."""
    from wharfinger.runtime.daemon_details import WarmPoolSnapshot  # noqa: PLC0415

    return tuple(
        record_from_json(item, WarmPoolSnapshot, "pool", {"name": name})
        for name, item in sorted(find_object(value, "pools").items())
    )


def repositories_to_json(repositories: Iterable[RepositorySnapshot]) -> JsonObject:
    """Return all PackageRepositories as JSON."""
    return {"repositories": {each.name: record_to_json(each, without={"name"}) for each in repositories}}


def repositories_from_json(value: JsonValue) -> tuple[RepositorySnapshot, ...]:
    """Read all PackageRepositories from JSON, sorted by name. Raises ShapeError."""
    return tuple(
        record_from_json(item, RepositorySnapshot, "repository", {"name": name})
        for name, item in sorted(find_object(value, "repositories").items())
    )


def queues_from_json(value: JsonValue) -> tuple[QueueSnapshot, ...]:
    """Read all queues from JSON, sorted by name. Raises ShapeError."""
    return tuple(queue_from_json(name, item) for name, item in sorted(find_object(value, "queues").items()))


def queue_to_json(queue: QueueSnapshot) -> JsonObject:
    """Return one queue as JSON, without its name, which is the key that it is stored under."""
    length: JsonObject = {"length": len(queue.tasks)}
    return {**length, "tasks": [_task_to_json(task) for task in queue.tasks]} if queue.tasks else length


def queue_from_json(name: str, value: JsonValue) -> QueueSnapshot:
    """Read one queue from JSON. Raises ShapeError."""
    tasks = find_list(value, "tasks")
    return QueueSnapshot(name, tuple(record_from_json(item, TaskSnapshot, "tasks") for item in tasks))


def _task_to_json(task: TaskSnapshot) -> JsonObject:
    readable: JsonObject = {"enqueued": duration(task.enqueued_s_ago)}
    if task.retry_in_s is not None:
        readable["next_retry"] = duration(task.retry_in_s)
    return record_to_json(task) | readable


def answer_to_json(answer: SettingsAnswer) -> JsonObject:
    """Return the verdict on some settings as JSON. Empty lists of problems and warnings are included, unless the verdict is
    Unknown.
    """
    match answer:
        case ValidSettings():
            return {"verdict": "Valid", "problems": [], "warnings": [], **record_to_json(answer)}
        case InvalidSettings():
            return {"verdict": "Invalid", "warnings": [], **record_to_json(answer)}
        case UnknownSettings(why):
            return {"verdict": "Unknown", "message": why}
        case _:
            assert_never(answer)


def answer_from_json(value: JsonValue) -> SettingsAnswer:
    """Read the verdict on some settings from JSON. Raises ShapeError."""
    answer = as_object(value, "answer")
    verdict = need_str(answer, "verdict")
    if verdict not in _VERDICTS:
        raise ShapeError(f"verdict: {verdict!r} is not one of {', '.join(_VERDICTS)}")
    return record_from_json({**answer, "why": answer.get("message")}, _VERDICTS[verdict], "answer")
