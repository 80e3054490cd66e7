"""A drift monitor with everything that it needs on a control plane in memory: rows, watches, and a function that applies rows
again.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx
import trio
from trio.testing import wait_all_tasks_blocked

from tests.cluster.support.drift_bench import MANAGER, DriftBench, drift_bench
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.drift.comparison import Drift, without_ignored
from wharfinger.cluster.drift.fights import Fight, FightRules
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.drift.monitor import DriftMonitor
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, desired_table, identity_of
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.live_objects import LiveObjects, open_live_objects
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.tables.transaction import write
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.control_plane.service import LOCAL
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, checksum, encode_json, find
from wharfinger.kube.resource import ObjectKey

OWNER: Final = Owner("web", "prod")
CONFIG: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod}, data: {a: x, b: z}}"
GONE: Final = "ConfigMap prod/c: gone"
EDITED: Final = "ConfigMap prod/c: /data/a by ed"
RULES: Final = FightRules(limit=3, window_s=300.0, first_delay_s=10.0, max_delay_s=60.0)


class Recording(httpx.AsyncBaseTransport):
    """A transport that records the requests of the monitor and the engine.

    ``fault`` can make a request fail. ``gates`` has an event for each name, and requests whose path ends with this name wait
    for the event.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.requests: list[str] = []
        self.fault: Callable[[httpx.Request], Exception | None] = lambda _: None
        self.gates: dict[str, trio.Event] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if "watch" not in request.url.params:
            name = request.url.path.rpartition("/")[2]
            self.requests.append(f"{request.method} {name}")
            if (gate := self.gates.get(name)) is not None:
                await gate.wait()
            if (fault := self.fault(request)) is not None:
                await trio.lowlevel.checkpoint()
                raise fault
        return await self._inner.handle_async_request(request)


@dataclass
class Keeper:
    """A drift monitor with everything that it needs. ``told`` is the last report about the owner; ``tellings`` has all reports
    as text.
    """

    bench: DriftBench
    client: HttpClusterClient
    sent: Recording
    nursery: trio.Nursery
    table: DesiredTable = field(default_factory=desired_table)
    applied: AppliedObjects = field(default_factory=lambda: AppliedObjects(MANAGER))
    told: tuple[tuple[Drift, ...], tuple[Fight, ...]] = ((), ())
    tellings: list[str] = field(default_factory=list)
    unsettled: set[Identity] = field(default_factory=set)
    corrected: list[Identity] = field(default_factory=list)
    corrects: bool = True
    _monitor: DriftMonitor | None = None
    _live: LiveObjects | None = None

    @property
    def monitor(self) -> DriftMonitor:
        assert self._monitor is not None
        return self._monitor

    def attach(self, monitor: DriftMonitor, live: LiveObjects) -> None:
        self._monitor, self._live = monitor, live

    def is_settled(self, identity: Identity) -> bool:
        return identity not in self.unsettled

    def tell(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        assert owner == OWNER
        self.told = drifts, fights
        self.tellings.append("; ".join(map(str, (*drifts, *fights))))

    def correct(self, identities: Iterable[Identity]) -> None:
        for identity in identities:
            self.corrected.append(identity)
            self.unsettled.add(identity)
            if self.corrects:
                self.nursery.start_soon(self.reapply, identity)

    async def put(self, desired: JsonObject, policy: DriftPolicy | None = None) -> ObjectKey:
        """Insert a row for an object, apply the object, and watch it. Return its key."""
        key = self.insert(await self.bench.key(desired), desired, policy)
        self.unsettled.add(identity_of(key))
        await self.reapply(identity_of(key))
        await self.watch(key)
        return key

    def insert(self, key: ObjectKey, desired: JsonObject, policy: DriftPolicy | None = None) -> ObjectKey:
        """Insert a row for the object into the table of desired objects, with this drift policy or with the default one. Return
        the key.
        """
        wanted = owned(desired, OWNER)
        body = PackedJson(encode_json(wanted))
        row = DesiredObject(key, OWNER, 0, body, checksum(wanted), policy or DriftPolicy())
        with write(self.table) as transaction:
            transaction.insert(self.table, row)
        return key

    def remove(self, key: ObjectKey) -> None:
        with write(self.table) as transaction:
            transaction.delete(self.table, identity_of(key))
        self.applied.forget(identity_of(key))

    async def watch(self, key: ObjectKey) -> None:
        assert self._live is not None
        self._live.attend(key.resource)
        await self._live.synced(key.resource)

    async def reapply(self, identity: Identity) -> None:
        """Apply a row again, as the reconciler does."""
        entry = self.table.snapshot().get(identity)
        assert entry is not None
        desired = entry.row.object()
        try:
            live = await self.bench.ours.get(entry.row.key)
            desired = without_ignored(desired, live, MANAGER, (*entry.row.drift.ignore, *BUILT_IN))
        except NotFoundError:
            pass
        self.applied.record(identity, await self.client.apply(desired, field_manager=MANAGER, force=True))
        self.unsettled.discard(identity)

    def reads(self) -> list[str]:
        """Return the requests with which the monitor has read objects so far."""
        return [request for request in self.sent.requests if request.startswith("GET") and request != "GET version"]


@asynccontextmanager
async def drift_keeper(
    *, full_s: float = 1e6, run: bool = True, draw: Callable[[], float] = lambda: 0.5
) -> AsyncIterator[Keeper]:
    """Run a monitor that compares all objects every ``full_s`` seconds. The default is longer than any test."""
    async with drift_bench() as bench, trio.open_nursery() as nursery:
        sent = Recording(bench.control_plane.transport())
        options = ClientOptions(user_agent=f"{MANAGER}/1.0", attempts=1)
        async with (
            open_client(Connection(LOCAL), transport=sent, options=options) as client,
            open_shared_watches(bench.ours) as watches,
            open_live_objects(bench.ours, watches) as live,
        ):
            keeper = Keeper(bench, client, sent, nursery)
            monitor = DriftMonitor(
                keeper.table,
                keeper.applied,
                client,
                correct=keeper.correct,
                told=keeper.tell,
                settled=keeper.is_settled,
                full_s=full_s,
                rules=RULES,
                draw=draw,
            )
            keeper.attach(monitor, live)
            live.listen(monitor.changed)
            if run:
                nursery.start_soon(monitor.run)
                await wait_all_tasks_blocked()  # the first full comparison takes place now, before any object exists
            yield keeper
            nursery.cancel_scope.cancel()


async def edit(keeper: Keeper, config: JsonObject, value: str = "theirs", by: str = "ed") -> None:
    await keeper.bench.patch(by, config, {"data": {"a": value}})
    await trio.sleep(1)


async def value_of(keeper: Keeper, config: JsonObject) -> str:
    return str(find(await keeper.bench.ours.get(await keeper.bench.key(config)), "data", "a"))
