"""The recorder of Kubernetes Events (``events.k8s.io/v1``). It never blocks its callers, and costs little even if many Events
occur.

`Recorder.record` only keeps the Event in memory; a task writes one Event after the other, with a pause of WRITE_PAUSE_S
between two writes. The memory and the number of writes are limited: equal Events form one series, the number of different
Events about the same object is limited (:mod:`~wharfinger.runtime.cluster_events.series`), and at most MAX_SERIES series are
kept. Events beyond these limits, and Events that the API server refuses, are dropped and counted. If a write fails for a reason
that may be temporary, it is tried again, up to ATTEMPTS times in all. Unwritten Events are lost when the process ends;
Kubernetes defines Events as best-effort data.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.watch.work_queue import WorkQueue
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, kind_of, name_of, namespace_of
from wharfinger.kube.times import format_micro_time
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.series import (
    Allowance,
    Create,
    Due,
    Lost,
    Observed,
    Series,
    SeriesEvent,
    Update,
    Wait,
    Written,
    begun,
    is_over,
    step,
)

log = logging.getLogger(__name__)

EVENT: Final = ResourceType("events.k8s.io", "v1", "Event", "events", namespaced=True)
REPORTER: Final = "wharfinger"
CLUSTER_NAMESPACE: Final = "default"
"""The namespace of Events about cluster-wide objects; the API server accepts no other namespace for them."""
MAX_SERIES: Final = 4_096
MAX_NOTE_BYTES: Final = 1_024
MAX_NAME: Final = 230
MAX_REPORTER: Final = 128
WRITE_PAUSE_S: Final = 0.05
"""The pause between two writes, so that the installation of many packages does not flood the API server with Events."""
ATTEMPTS: Final = 10
"""The number of attempts to write an Event, if each attempt fails for a reason that may be temporary. The pauses between the
attempts add up to about 26 seconds.
"""
WARN_S: Final = 600.0
SERVER_ERROR: Final = 500
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def reference(self) -> JsonObject:
        """Return the subject as an ObjectReference of the Kubernetes API."""
        parts = {"namespace": self.namespace, "uid": self.uid}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            **{name: text for name, text in parts.items() if text},
        }


def subject_of(obj: JsonObject) -> Subject:
    """Return the subject for an object of the API server."""
    api_version, kind = kind_of(obj)
    return Subject(api_version, kind, namespace_of(obj), name_of(obj), find_str(obj, "metadata", "uid"))


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An Event without its times and its count. Events that agree in these fields are one series."""

    subject: Subject
    reason: EventReason
    note: str
    related: Subject | None = None


class Recorder:
    """The recorder of one daemon. Made by :func:`open_recorder`."""

    def __init__(self, client: ClusterClient, now: Callable[[], datetime], instance: str, shard: str = "") -> None:
        """Make the recorder of the daemon with the identity ``instance``. The daemon's ``shard`` becomes part of
        ``reportingController``.
        """
        self._reporter = f"{REPORTER}/{shard}" if shard else REPORTER
        self._client = client
        self._now = now
        self._instance = instance[:MAX_REPORTER] or REPORTER
        self._series: dict[RecordedEvent, Series] = {}
        self._names: dict[RecordedEvent, str] = {}
        self._allowed: dict[Subject, Allowance] = {}
        self._attempts: dict[RecordedEvent, int] = {}
        self._queue: WorkQueue[RecordedEvent] = WorkQueue()
        self._last_name = 0
        self._swept_s = float("-inf")
        self._warned_s = float("-inf")
        self.dropped = 0
        """The number of Events that were dropped, and of Events whose last count was not written."""

    def record(self, subject: Subject, reason: EventReason, note: str, related: Subject | None = None) -> None:
        """Arrange that an Event is written, or counted if it repeats an earlier Event. Does not wait for the write."""
        key, now_s, at = RecordedEvent(subject, reason, _cut(note), related), trio.current_time(), self._now()
        known = self._series.get(key)
        if known is not None and not is_over(known, now_s):
            self._step(key, Observed(now_s, at))
            return
        if len(self._series) >= MAX_SERIES or len(self._allowed) >= MAX_SERIES:
            self._sweep(now_s)
        left = self._allowed.get(subject, Allowance()).use(now_s)
        if left is None or len(self._series) >= MAX_SERIES:
            self._drop(key, "the limit on Events is reached")
            return
        self._allowed[subject] = left
        self._names.pop(key, None)
        self._series[key] = begun(now_s, at)
        self._queue.add(key)

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            key = await self._queue.take()
            try:
                await self._turn(key)
            finally:
                self._queue.done(key)
            await trio.sleep(WRITE_PAUSE_S)

    # -- internal

    def _step(self, key: RecordedEvent, event: SeriesEvent) -> Create | Update | None:
        """Apply ``event`` to the series of ``key``, and plan the time of the next step. Return the write that is due now; None
        if no write is due.
        """
        series = self._series.get(key)
        if series is None:
            return None
        self._series[key], effect = step(series, event)
        match effect:
            case Wait(delay_s) if delay_s > 0:
                self._queue.add_later(key, delay_s)
            case Wait():
                self._queue.add(key)
            case Create() | Update():
                return effect
            case None:
                pass
            case _:
                assert_never(effect)
        return None

    async def _turn(self, key: RecordedEvent) -> None:
        write = self._step(key, Due(trio.current_time()))
        if write is None:
            await trio.lowlevel.checkpoint()
            return
        series = self._series[key]
        try:
            if isinstance(write, Update):
                await self._update(key, series)
            else:
                await self._create(key, series)
        except ConflictError as error:
            if isinstance(write, Update):
                self._retry(key, str(error))
            else:
                self._names.pop(key, None)  # another Event has this name
                self._retry(key, "its name is taken")
        except NotFoundError as error:
            if isinstance(write, Update):
                self._names.pop(key, None)
                self._step(key, Lost())
                self._queue.add(key)
            else:
                self._give_up(key, str(error))
        except ApiError as error:
            if error.code >= SERVER_ERROR or error.code == TOO_MANY:
                self._retry(key, str(error))
            else:
                self._give_up(key, str(error))
        except ClusterError as error:
            self._retry(key, str(error))
        else:
            self._attempts.pop(key, None)
            self._queue.succeeded(key)
            self._step(key, Written(trio.current_time(), series.count))

    async def _create(self, key: RecordedEvent, series: Series) -> None:
        name = self._names.setdefault(key, self._new_name(key.subject, series.first))
        event: JsonObject = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": name, "namespace": _namespace(key)},
            "eventTime": format_micro_time(series.first),
            "reportingController": self._reporter,
            "reportingInstance": self._instance,
            "action": key.reason.action,
            "reason": str(key.reason),
            "regarding": key.subject.reference(),
            "note": key.note,
            "type": str(key.reason.type),
        }
        if key.related is not None:
            event["related"] = key.related.reference()
        if series.count > 1:
            event["series"] = _counted(series)
        await self._client.create(event)

    async def _update(self, key: RecordedEvent, series: Series) -> None:
        where = ObjectKey(EVENT, _namespace(key), self._names[key])
        await self._client.merge_patch(where, {"series": _counted(series)})

    def _new_name(self, subject: Subject, at: datetime) -> str:
        """Return a name in the form that client-go's recorder uses: the name of the subject, and a time in hexadecimal."""
        number = max(int(at.timestamp() * 1e9), self._last_name + 1)
        self._last_name = number
        return f"{subject.name[:MAX_NAME]}.{number:x}"

    def _retry(self, key: RecordedEvent, why: str) -> None:
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        if attempts >= ATTEMPTS:
            self._give_up(key, why)
        else:
            self._queue.failed(key)

    def _give_up(self, key: RecordedEvent, why: str) -> None:
        self._queue.succeeded(key)
        self._forget(key)
        self._drop(key, why)

    def _forget(self, key: RecordedEvent) -> None:
        self._series.pop(key, None)
        self._names.pop(key, None)
        self._attempts.pop(key, None)

    def _drop(self, key: RecordedEvent, why: str) -> None:
        self.dropped += 1
        now_s = trio.current_time()
        if now_s - self._warned_s >= WARN_S:
            self._warned_s = now_s
            where = f"{key.subject.kind} {key.subject.namespace}/{key.subject.name}"
            log.warning("an Event %s about %s was not written: %s", key.reason, where, why)

    def _sweep(self, now_s: float) -> None:
        """Forget the series that have ended, and the allowances that have grown back to BURST. Do this at most once a
        second.
        """
        if now_s - self._swept_s < 1.0:
            return
        self._swept_s = now_s
        for key in [key for key, series in self._series.items() if is_over(series, now_s)]:
            self._forget(key)
        self._allowed = {subject: one for subject, one in self._allowed.items() if not one.is_full(now_s)}


@asynccontextmanager
async def open_recorder(
    client: ClusterClient, now: Callable[[], datetime], instance: str, shard: str = ""
) -> AsyncGenerator[Recorder, None]:
    """Write Events while the block runs; ``instance`` is the identity of this daemon. Events that are not written when the
    block ends are dropped.
    """
    recorder = Recorder(client, now, instance, shard)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.run, name="Events")
        yield recorder
        nursery.cancel_scope.cancel(reason="no more Events are written")


def _namespace(key: RecordedEvent) -> str:
    return key.subject.namespace or CLUSTER_NAMESPACE


def _counted(series: Series) -> JsonObject:
    return {"count": series.count, "lastObservedTime": format_micro_time(series.last)}


def _cut(note: str) -> str:
    """Return the text in one line, cut to the number of bytes that an Event's note may have."""
    text = " ".join(note.split())
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= MAX_NOTE_BYTES else raw[: MAX_NOTE_BYTES - 3].decode("utf-8", "ignore") + "…"
