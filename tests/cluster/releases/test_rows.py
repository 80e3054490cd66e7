"""The rows of releases: how they are written, watched and removed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, key
from tests.cluster.support.release_bench import Faulty, cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, InvalidError
from wharfinger.cluster.apply.operations import ApplyOperations
from wharfinger.cluster.apply.removal import RemovalDecision
from wharfinger.cluster.apply.writer import ObjectWriter
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, desired_object, desired_table
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.live_objects import LiveObjects, open_live_objects
from wharfinger.cluster.objects.lookup import look_up
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner
from wharfinger.cluster.reconciler.service import open_reconciler
from wharfinger.cluster.releases.rows import ReleaseRows, Removed
from wharfinger.cluster.watch.object_waits import Laggards, silent
from wharfinger.cluster.watch.readiness import Failed
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, find_str

OWNER = Owner("web", "default")


def row(name: str = "a", owner: Owner = OWNER, mode: DriftMode = DriftMode.CORRECT, **data: str) -> DesiredObject:
    return desired_object(key(name), owner, config_map(name) | {"data": {**data}}, DriftPolicy(mode))


class Bench:
    """The rows of releases on a new cluster in memory."""

    def __init__(self, client: ClusterClient, transport: Faulty, rows: ReleaseRows, live: LiveObjects) -> None:
        self.client = client
        self.transport = transport
        self.rows = rows
        self._live = live

    def kinds(self) -> list[str]:
        """Return the watched kinds."""
        return list(self._live.statistics().objects)

    async def put(self, *rows: DesiredObject) -> list[str]:
        """Look up the live objects of the rows, and put the rows into the table. Return the write requests that were sent."""
        lives = {one.identity: await look_up(self.client, one.key) for one in rows}
        before = {one.identity: one.body for one in self.rows.of(OWNER)}
        self.transport.requests.clear()
        await self.rows.put(rows, lives, before, silent)
        return self.transport.writes

    async def names(self) -> set[str]:
        listed = await self.client.list(CONFIG_MAP, "default")
        return {find_str(one, "metadata", "name") for one in listed.items} - {"kube-root-ca.crt"}


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    async with cluster() as (client, transport), open_shared_watches(client) as watches:
        table, applied = desired_table(), AppliedObjects("wharfinger")
        operations = ApplyOperations(
            client,
            ObjectWriter(client, "wharfinger"),
            applied,
            lambda _key, _obj: None,
            {OWNER}.__contains__,
            frozenset[Owner]().__contains__,
        )
        async with (
            open_live_objects(client, watches) as live,
            open_reconciler(table, operations, name="apply", owner=lambda one: one.group) as reconciler,
        ):
            yield Bench(client, transport, ReleaseRows(table, reconciler, operations, applied, live), live)


async def test_only_objects_that_differ_are_written(autojump_clock: MockClock) -> None:
    async with bench() as at:
        assert sorted(await at.put(row("a", v="1"), row("b"))) == ["PATCH a", "PATCH b"]
        assert await at.put(row("a", v="1"), row("b")) == []
        assert await at.put(row("a", v="2"), row("b")) == ["PATCH a"]
        await at.client.delete(key("b"))
        assert await at.put(row("a", v="2"), row("b")) == ["PATCH b"]
        edit: JsonObject = {**config_map("a", v="9"), "metadata": {"name": "a", "namespace": "default"}}
        await at.client.apply(edit, field_manager="ann", force=True)
        assert await at.put(row("a", v="2"), row("b")) == ["PATCH a", "PATCH a"]  # the first one is refused
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}
        assert await at.put() == []


async def test_a_changed_drift_policy_causes_no_write(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.put(row("a"))
        assert await at.put(row("a", mode=DriftMode.OFF)) == []
        assert [one.drift.mode for one in at.rows.of(OWNER)] == [DriftMode.OFF]
        assert at.rows.settled([row("a").group])


async def test_filled_rows_are_assumed_to_be_done(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.rows.fill([row("a"), row("b")])
        await trio.sleep(60)
        assert at.transport.writes == []
        assert at.rows.settled([row("a").group])
        at.rows.fill([row("a", v="1")])
        assert [one.object()["data"] for one in at.rows.of(OWNER)] == [{}, {}]
        assert sorted(await at.put(row("a"), row("b"))) == ["PATCH a", "PATCH b"]


async def test_a_row_of_another_release_is_refused(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.put(row("a", Owner("db", "default")))
        with pytest.raises(ForeignObjectError):
            await at.put(row("a"))


async def test_a_permanent_error_takes_precedence(autojump_clock: MockClock) -> None:
    async with bench() as at:
        told: list[Laggards] = []

        def fault(asked: httpx.Request) -> Exception | httpx.Response | None:
            if asked.method != "PATCH" or asked.url.path.endswith("/fine"):
                return None
            bad = asked.url.path.endswith("/bad")
            return httpx.Response(422, content=b"{}") if bad else httpx.ConnectError("refused")

        at.transport.fault = fault
        with pytest.raises(InvalidError, match="ConfigMap default/bad"):
            await at.rows.put([row("away"), row("bad"), row("fine")], {}, {}, told.append)
        at.rows.forget_unfinished(OWNER)
        assert [one.key.name for one in at.rows.of(OWNER)] == ["fine"]
        await trio.sleep(3600)
        assert await at.names() == {"fine"}
        assert told
        assert all(not isinstance(state, Failed) for laggards in told[:1] for state in laggards.values())
        with pytest.raises(ClusterError, match="refused"):
            await at.rows.put([row("away")], {}, {}, silent)


async def test_removal_deletes_the_selected_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        rows = [row("a"), row("b"), row("c")]
        await at.put(*rows)
        uids = {one.identity: find_str(await at.client.get(one.key), "metadata", "uid") for one in (*rows[:2],)}
        kept: RemovalDecision = RemovalDecision({rows[0].identity: uids[rows[0].identity]}, {key("c"): "kept"})
        assert await at.rows.remove(rows, kept, silent) == Removed([key("a")])
        assert await at.names() == {"b", "c"}
        assert at.rows.of(OWNER) == ()
        # A finalizer blocks the deletion of the next object.
        await at.client.merge_patch(key("b"), {"metadata": {"finalizers": ["example.com/hold"]}})
        uid = uids[rows[1].identity]
        decided = RemovalDecision({rows[1].identity: uid})
        assert await at.rows.remove([rows[1]], decided, silent) == Removed([key("b")], {key("b"): uid})
        assert await at.names() == {"b", "c"}


async def test_a_kind_is_watched_while_it_has_rows(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.put(row("a"), row("b"))
        assert at.kinds() == ["ConfigMap/v1"]
        at.rows.forget([row("a")])
        assert at.kinds() == ["ConfigMap/v1"]
        at.rows.forget([row("b"), row("never")])
        assert at.kinds() == []


async def test_uids_are_those_of_applied_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.put(row("a"))
        live = await at.client.get(key("a"))
        assert at.rows.uids([row("a"), row("b")]) == {find_str(live, "metadata", "uid")}
        assert at.rows.left([row("a")]) == {}
