"""The explanation of a package's state at an earlier time, from the records until that time.

The statuses, the scheduler's nodes, and the queues of all packages are restored from the records. The explanation is made as
by `wharfinger why` (:mod:`wharfinger.runtime.why.explanation`). Limits on concurrent work and the objects of releases are not
recorded, so the chain of causes does not contain waits for them. If the records of another package in the chain begin only
after the earlier time, the first known state of that package is used, and the explanation says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile

from wharfinger.formats.json.value import JsonValue
from wharfinger.kube.times import format_time
from wharfinger.runtime.core.package_snapshot import condition_snapshots
from wharfinger.runtime.inspector import PackageSnapshot, ProgressSnapshot, QueueSnapshot, TaskSnapshot
from wharfinger.runtime.recording.history import is_start, names_in, part_of
from wharfinger.runtime.recording.past import Past
from wharfinger.runtime.recording.record import GapRecord, Record
from wharfinger.runtime.recording.replay import expanded
from wharfinger.runtime.recording.ring import Rings
from wharfinger.runtime.scheduler_details import DependencySnapshot, ExplanationSnapshot, LackSnapshot, NodeSnapshot
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.why.causes import Known
from wharfinger.runtime.why.explanation import explain


def explain_at(rings: Rings, name: str, at: datetime) -> ExplanationSnapshot | None:
    """Explain a package's state at a time from the records in memory. Return None if the state at that time cannot be computed
    from these records.
    """
    limit, pasts, late = at.timestamp(), dict[str, Past](), dict[str, float]()
    for each in {*rings.names(), name}:
        ring = rings.get(each)
        if ring is None:
            continue
        text = rings.text_of(each)
        past = pasts[each] = ring.base(text)
        if past.time > limit:
            late[each] = past.time
        for record in ring.records(text):
            if record.time > limit:
                break
            past.fold(record)
        if past.time == 0.0:
            del pasts[each]
    return None if name in late else _explained(name, pasts, at, late)


def explain_recorded(records: Iterable[Record], name: str, at: datetime) -> ExplanationSnapshot | None:
    """Explain a package's state at a time from a recording. Return None if the state at that time cannot be computed from the
    recording.
    """
    limit, pasts = at.timestamp(), dict[str, Past]()
    for record in expanded(takewhile(lambda each: each.time <= limit, records)):
        if is_start(record) or isinstance(record, GapRecord):
            pasts.clear()
        for each in names_in(record):
            part = part_of(record, each)
            if part is not None:
                pasts.setdefault(each, Past()).fold(part)
    return _explained(name, pasts, at, {})


def _explained(
    name: str, pasts: Mapping[str, Past], at: datetime, late: Mapping[str, float]
) -> ExplanationSnapshot | None:
    used: set[str] = set()

    def package(each: str) -> PackageSnapshot | None:
        used.add(each)
        past = pasts.get(each)
        return _package(each, past, at) if past is not None else None

    def node(each: str) -> NodeSnapshot | None:
        past = pasts.get(each)
        return _node(each, past, pasts) if past is not None else None

    def holders(order: int) -> tuple[str, ...]:
        return tuple(sorted(each for each, past in pasts.items() if _holds(past.entry, order)))

    found = explain(name, Known(at, package, node, holders))
    if found is None:
        return None
    notes = tuple(
        f"the recorded events of {each} begin only at {format_time(datetime.fromtimestamp(late[each], UTC))}, "
        "so its state at that later time is shown"
        for each in sorted(used & late.keys())
    )
    return replace(found, also=found.also + notes)


def _package(name: str, past: Past, at: datetime) -> PackageSnapshot | None:
    status = past.status
    if status is None:
        return None
    namespace, dot, _ = name.partition(".")
    state, message, tip = summarize(status)
    progress = status.progress
    return PackageSnapshot(
        name=name,
        kind="Application" if dot else "Module",
        namespace=namespace if dot else "",
        package="",
        version=status.wanted,
        digest="",
        release_revision=status.revision,
        state=state,
        message=message,
        tip=tip,
        settings={},
        conditions=condition_snapshots(status),
        queue=QueueSnapshot(name, _tasks(past, at)),
        installed_version=status.version,
        installed_digest=status.digest,
        suspended=status.suspended,
        maintenance=status.maintenance.reason if status.maintenance is not None else "",
        progress=None
        if progress is None
        else ProgressSnapshot(progress.completed, progress.remaining, progress.waiting_for),
        warnings=status.warnings,
    )


def _tasks(past: Past, at: datetime) -> tuple[TaskSnapshot, ...]:
    tasks: list[TaskSnapshot] = []
    for lane, form in past.lanes.items():
        match form:
            case [str(phase), str(name), _, details, [int(attempt), _, str(error)], *_]:
                retry = past.retries.get(lane)
                cause = str(details[1]) if phase == "Ending" and isinstance(details, list) else ""
                head = TaskSnapshot(
                    index=len(tasks) + 1,
                    name=name,
                    lane=lane,
                    enqueued_s_ago=0.0,
                    attempt=attempt,
                    running=phase in ("Running", "Completing", "Ending"),
                    retry_in_s=max(0.0, retry - at.timestamp())
                    if retry is not None and phase == "BackingOff"
                    else None,
                    error=error,
                    cause=cause,
                    parked=phase == "Parked",
                )
                tasks.append(head)
                waiting = past.tasks.get(lane)
                names = (
                    [str(each[1]) for each in waiting if isinstance(each, list)] if isinstance(waiting, list) else []
                )
                tasks += [_waiting(len(tasks) + 1 + place, each, lane) for place, each in enumerate(names)]
            case _:
                pass
    return tuple(tasks)


def _waiting(index: int, name: str, lane: str) -> TaskSnapshot:
    return TaskSnapshot(index, name, lane, 0.0, 0, running=False, retry_in_s=None, error="", cause="", parked=False)


def _node(name: str, past: Past, pasts: Mapping[str, Past]) -> NodeSnapshot | None:
    match past.entry:
        case [int(order), [str(phase), *details], decision, _, _, [*lacks], since, int(run), _]:
            pass
        case _:
            return None
    known = past.node
    verdict, reason, message = "Undefined", "", ""
    match decision:
        case [str(verdict), str(reason), str(message), *_]:
            pass
        case _:
            pass
    idle = phase == "idle"
    return NodeSnapshot(
        name=name,
        version=known.version if known is not None else "",
        order=order,
        state=phase,
        decision=verdict,
        reason=reason,
        message=message,
        dependencies=()
        if known is None
        else tuple(
            DependencySnapshot(each.name, each.constraint.text, optional) for each, optional in known.dependencies()
        ),
        declared_order=known.order if known is not None else 0,
        run=run,
        failed=phase == "scheduled" and details[-1:] == [True],
        since=datetime.fromisoformat(since) if isinstance(since, str) else None,
        lacks=tuple(_lack(kind, each, pasts) for kind, each in _pairs(lacks)) if idle else (),
        subscriptions=known.subscriptions if known is not None else (),
    )


def _lack(kind: str, name: str, pasts: Mapping[str, Past]) -> LackSnapshot:
    past = pasts.get(name)
    match kind, past.entry if past is not None else None:
        case "Package", [_, ["scheduled", _, True], *_]:
            state = "failed"
        case "Package", [_, [str(phase), *_], *_]:
            state = phase
        case "Package", _:
            state = "absent"
        case "Tier", _:
            state = "held"
        case _:
            state = "awaited"
    return LackSnapshot(kind.lower(), name, state)


def _holds(entry: JsonValue, order: int) -> bool:
    match entry:
        case [int(own), [str(phase), *details], _, _, _, _, _, _, bool(stuck)]:
            failed = phase == "scheduled" and details[-1:] == [True]
            return own == order and phase != "active" and not stuck and not failed
        case _:
            return False


def _pairs(values: list[JsonValue]) -> list[tuple[str, str]]:
    return [(str(each[0]), str(each[1])) for each in values if isinstance(each, list) and len(each) == 2]
