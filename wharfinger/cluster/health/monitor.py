"""The health of every release at all times, from the desired rows and the live objects; and waits until objects are ready.

    async with open_health_monitor(table, client, live, told=listener) as health:
        report = await health.wait_ready(owner, progress=tell)

Live objects are reported by :mod:`~wharfinger.cluster.objects.live_objects`; a `Fact` is kept of each. The built-in rules for
readiness are applied as soon as an object is reported. A release's own rules are applied in tasks, because such a rule runs in
a worker process and may take long. Objects that are not ready are *laggards*. Invariants:

* ``told`` is called for a release when its laggards, their messages or its state change, at most once per :data:`QUIET_S`.
  ``told`` is not called before all objects of the release were looked up, because the readiness of an object is not known
  before. If :meth:`HealthMonitor.health` has meanwhile returned a health that was not reported, the next health is reported even
  if it equals the last reported one.
* A wait ends only on a state that is certain: never on a state from before an apply that was reported to
  :meth:`HealthMonitor.applied`, nor on a state that is being determined. A wait ends at the first failure; a cancelled wait
  leaves nothing behind.
* A release is Degraded only for a cause that lasts: an object that failed, or one that stalled
  (:mod:`~wharfinger.cluster.health.stall`). Until then, a release with an unready object is Reconciling.
* A kind that cannot be looked up does not block others: its objects are laggards, and the message gives the reason.
* The controller of a custom kind that declares a status has :data:`~wharfinger.cluster.health.facts.GRACE_S` from an object's
  creation to write the status; after that, the object counts as Current, like an object of a kind without a status.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.object_events import last_event
from wharfinger.cluster.health.facts import HealthFacts
from wharfinger.cluster.health.health import Health, health_of
from wharfinger.cluster.health.rules import Expressions, HealthRule, rule_for
from wharfinger.cluster.health.stall import GRACE_S, Unready, followed
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, identity_of
from wharfinger.cluster.objects.live_objects import LiveObjects
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.tables.errors import TrackerExpiredError
from wharfinger.cluster.watch.object_waits import Laggards, Progress, WaitReport, silent
from wharfinger.cluster.watch.readiness import Failed, InProgress, Readiness
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType

QUIET_S: Final = 0.2
"""The least time between two rounds of reports, in seconds. A round reports all releases that changed."""
PATIENCE_S: Final = 5.0
"""The interval at which a wait reads the newest events of the objects that are not ready, in seconds."""
MAX_ASKED: Final = 5
"""The maximum number of objects whose events one wait reads. A wait reads the events of objects that are not ready."""
ASKING_S: Final = 10.0
"""The time limit for reading the events of an object, in seconds."""

_OUTDATED: Final = Health(known=False)
"""A placeholder for the last reported health of a release. It differs from any real health, so the next health is reported."""

OnHealth: TypeAlias = Callable[[Owner, Health], None]
"""A callback for the health of a release. It must neither block nor raise."""


@dataclass(frozen=True, slots=True)
class HealthStatistics:
    """The counts of a monitor. ``objects``: the live objects that the monitor knows; ``open``: those whose readiness is not
    determined yet.
    """

    objects: int
    open: int
    releases: int
    waits: int


@dataclass(slots=True)
class _Wait:
    """A wait under way. ``events`` has the newest event of each object; ``moved`` is set when a state or an event has
    changed.
    """

    owner: Owner
    keys: frozenset[Identity] | None
    moved: trio.Event = field(default_factory=trio.Event)
    events: dict[ObjectKey, str] = field(default_factory=dict)
    laggards: Laggards = field(default_factory=dict)


class HealthMonitor:
    """A monitor of the health of releases. Made by :func:`open_health_monitor`."""

    def __init__(
        self,
        table: DesiredTable,
        client: ClusterClient,
        expressions: Expressions | None,
        told: OnHealth | None,
        now: Callable[[], datetime],
        grace_s: float = GRACE_S,
    ) -> None:
        self._table = table
        self._client = client
        self._on_health = told
        self._facts = HealthFacts(client, expressions, self._rule_of, self._touch_object, now)
        self._rules: dict[Owner, tuple[HealthRule, ...]] = {}
        self._looked_up: dict[ResourceType, str] = {}
        self._owners: dict[Identity, Owner] = {}
        self._told: dict[Owner, Health] = {}
        self._grace_s = grace_s
        self._unready: dict[Owner, dict[ObjectKey, Unready]] = {}
        self._stalls: dict[Owner, float] = {}
        self._dirty: set[Owner] = set()
        self._wake = trio.Event()
        self._waits: list[_Wait] = []

    # -- notifications

    def changed(self, key: ObjectKey, obj: JsonObject | None) -> None:
        """Record the present state of a live object; ``obj`` is None if the object is gone. :meth:`LiveObjects.listen` gets
        this method as a listener.
        """
        if obj is None:
            self._facts.lost(key)
        else:
            self._facts.saw(key, obj)

    def applied(self, key: ObjectKey, response: JsonObject) -> None:
        """Record the object as an apply returned it. From now on, an older state of the object does not end a wait for it."""
        self._facts.answered(key, response)

    def looked_up(self, resource: ResourceType, why: str | None) -> None:
        """Record whether a kind was found in the cluster. `LiveObjects.listen` gets this method as a callback.

        ``why`` is "" if the lookup succeeded, the reason if it failed, and None if the kind is no longer watched.
        """
        if why is None:
            self._looked_up.pop(resource, None)
            if not any(other.group_kind == resource.group_kind for other in self._looked_up):
                self._facts.forget(resource.group_kind)
            return
        self._looked_up[resource] = why
        for owner in {
            entry.row.owner for entry in self._table.snapshot().entries() if entry.row.key.resource == resource
        }:
            self._touch(owner)

    def set_rules(self, owner: Owner, rules: tuple[HealthRule, ...]) -> None:
        """Judge the objects of a release by these rules from now on."""
        before = self._rules.get(owner, ())
        if before == rules:
            return
        if rules:
            self._rules[owner] = rules
        else:
            self._rules.pop(owner, None)
        for row in self._rows(owner):
            self._facts.judge_again(row.key)

    # -- queries

    def health(self, owner: Owner) -> Health:
        """Return the present health of a release."""
        health = self._health(owner)
        if owner in self._told and health.differs(self._told[owner]):
            self._told[owner] = _OUTDATED
        return health

    def _health(self, owner: Owner) -> Health:
        rows = self._rows(owner)
        unknown = [row.key for row in rows if not self._is_known(row)]
        health = health_of({row.key: self._state(row) for row in rows}, unknown)
        now = trio.current_time()
        unready = followed(self._unready.get(owner, {}), health.laggards, now)
        late = {key for key, one in unready.items() if one.stalls_at(self._grace_s) <= now}
        return replace(health, stalled=frozenset(late)) if late else health

    def readiness(self, row: DesiredObject) -> Readiness:
        """Return the present readiness of the object of a row."""
        return self._state(row)

    async def wait_ready(
        self, owner: Owner, keys: Iterable[ObjectKey] | None = None, *, progress: Progress = silent
    ) -> WaitReport:
        """Wait until the objects of a release with these ``keys`` (None: all objects) are Current, or one of them has Failed.

        ``progress`` is called with the laggards each time they change; after :data:`PATIENCE_S` their messages include
        their newest events. Objects that leave the release meanwhile are not waited for. The caller sets the deadline.
        """
        wait = _Wait(owner, None if keys is None else frozenset(map(identity_of, keys)))
        self._waits.append(wait)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._ask_about, wait)
                report = await self._settled(wait, progress)
                nursery.cancel_scope.cancel(reason="the wait is over")
        finally:
            self._waits.remove(wait)
        return report

    def statistics(self) -> HealthStatistics:
        """Return the present counts."""
        return HealthStatistics(len(self._facts), self._facts.open, len(self._told), len(self._waits))

    # -- tasks of `open_health_monitor`

    async def run(self) -> None:
        """Follow rows, judge objects and report changes, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._facts.run, name="health judges")
            nursery.start_soon(self._follow_rows, name="health of rows")
            nursery.start_soon(self._report_all, name="health listener")

    async def _follow_rows(self) -> None:
        while True:
            try:
                with self._table.changes("health") as stream:
                    while True:
                        for change in stream.next():
                            self._take_row(change.key, change.row, deleted=change.deleted)
                        await stream.changed()
            except TrackerExpiredError:
                for owner in set(self._owners.values()):
                    self._touch(owner)
                self._owners.clear()

    def _take_row(self, identity: Identity, row: DesiredObject, *, deleted: bool) -> None:
        before = self._owners.pop(identity, None)
        if before is not None and before != row.owner:
            self._touch(before)
        if not deleted:
            self._owners[identity] = row.owner
            self._facts.judge_again(row.key)
        self._touch(row.owner)

    async def _report_all(self) -> None:
        while True:
            with trio.move_on_at(min((self._facts.next_grace, *self._stalls.values()))):
                await self._wake.wait()
            self._facts.end_graces()
            self._wake = trio.Event()
            self._dirty |= {owner for owner, due in self._stalls.items() if due <= trio.current_time()}
            dirty, self._dirty = self._dirty, set()
            for owner in sorted(dirty, key=str):
                self._tell(owner)
            await trio.sleep(QUIET_S)

    def _tell(self, owner: Owner) -> None:
        health = self._health(owner)
        self._follow_unready(owner, health)
        if not (health.ready or health.laggards):
            self._told.pop(owner, None)
            return
        if health.known and health.differs(self._told.get(owner)):
            self._told[owner] = health
            if self._on_health is not None:
                self._on_health(owner, health)

    def _follow_unready(self, owner: Owner, health: Health) -> None:
        """Record how long each object that is not ready has been in its state, and when the next of these objects counts as
        stalled.
        """
        self._stalls.pop(owner, None)
        if not health.known:
            return  # the former times are kept until everything is looked up again
        now = trio.current_time()
        unready = followed(self._unready.pop(owner, {}), health.laggards, now)
        if unready:
            self._unready[owner] = unready
            due = min((at for one in unready.values() if (at := one.stalls_at(self._grace_s)) > now), default=inf)
            if due < inf:
                self._stalls[owner] = due

    # -- waiting

    async def _settled(self, wait: _Wait, progress: Progress) -> WaitReport:
        said: Laggards | None = None
        while True:
            report = WaitReport(self._certain(wait))
            wait.laggards = report.laggards
            if (told := _with_events(report.laggards, wait.events)) != said:
                said = told
                progress(told)
            if report.done or report.failed:
                return report
            wait.moved = trio.Event()  # no await since the states were read, so no change is missed
            await wait.moved.wait()

    def _certain(self, wait: _Wait) -> dict[ObjectKey, Readiness]:
        rows = [row for row in self._rows(wait.owner) if wait.keys is None or row.identity in wait.keys]
        return {row.key: self._state(row, certain=True) for row in sorted(rows, key=lambda row: row.key)}

    async def _ask_about(self, wait: _Wait) -> None:
        """Read the newest events of the first laggards, as long as the wait lasts."""
        while True:
            await trio.sleep(PATIENCE_S)
            for key in tuple(wait.laggards)[:MAX_ASKED]:
                fact = self._facts.get(identity_of(key))
                with trio.move_on_after(ASKING_S):
                    try:
                        wait.events[key] = await last_event(self._client, key, fact.seen.uid if fact else "")
                    except ClusterError:
                        continue  # a wait does not depend on events
            wait.moved.set()

    # -- one object

    def _rows(self, owner: Owner) -> list[DesiredObject]:
        return [entry.row for entry in self._table.snapshot().find("owner", owner)]

    def _is_known(self, row: DesiredObject) -> bool:
        return self._facts.get(row.identity) is not None or row.key.resource in self._looked_up

    def _state(self, row: DesiredObject, *, certain: bool = False) -> Readiness:
        fact = self._facts.get(row.identity)
        if fact is not None:
            now = trio.current_time()
            return fact.certain_at(now) if certain else fact.at(now)
        why = self._looked_up.get(row.key.resource)
        if why is None:
            return InProgress("not looked up yet")
        return InProgress(f"cannot be looked up: {why}") if why else InProgress("not there", absent=True)

    def _rule_of(self, identity: Identity) -> HealthRule | None:
        entry = self._table.snapshot().get(identity)
        if entry is None:
            return None
        resource = entry.row.key.resource
        return rule_for(self._rules.get(entry.row.owner, ()), resource.api_version, resource.kind)

    def _touch_object(self, identity: Identity) -> None:
        entry = self._table.snapshot().get(identity)
        if entry is not None:
            self._touch(entry.row.owner)

    def _touch(self, owner: Owner) -> None:
        self._dirty.add(owner)
        self._wake.set()
        for wait in self._waits:
            if wait.owner == owner:
                wait.moved.set()


@asynccontextmanager
async def open_health_monitor(
    table: DesiredTable,
    client: ClusterClient,
    live: LiveObjects,
    *,
    expressions: Expressions | None = None,
    told: OnHealth | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    grace_s: float = GRACE_S,
) -> AsyncGenerator[HealthMonitor, None]:
    """Yield a monitor of all releases in ``table``, for as long as the block runs.

    ``expressions`` evaluates the rules of releases; without it, rules are ignored. ``now`` is the clock for the ages of
    objects. ``grace_s``: the time for which an object may be unready without a change before it counts as stalled. Open the
    monitor before kinds are watched; otherwise the monitor misses their objects.
    """
    monitor = HealthMonitor(table, client, expressions, told, now, grace_s)
    live.listen(monitor.changed, monitor.looked_up)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(monitor.run, name="health monitor")
        yield monitor
        nursery.cancel_scope.cancel()


def _with_events(laggards: Laggards, events: dict[ObjectKey, str]) -> Laggards:
    """Return the laggards with their newest events appended to their messages."""
    return {key: _with_event(state, events.get(key, "")) for key, state in laggards.items()}


def _with_event(state: InProgress | Failed, event: str) -> InProgress | Failed:
    return state if not event or event in state.message else type(state)(f"{state.message} ({event})")
