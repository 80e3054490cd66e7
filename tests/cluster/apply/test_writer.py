"""The apply of one object: which fields are adopted, left to their manager, taken back, or refused as conflicts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError
from wharfinger.cluster.apply.writer import ObjectWriter, rules_of
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.fields.conflicts import FieldConflictError
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy, IgnoreRule
from wharfinger.cluster.objects.lookup import look_up
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_str

OURS = "wharfinger"
CORRECT, WARN = DriftPolicy(), DriftPolicy(DriftMode.WARN)


def obj(**data: JsonValue) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data}


class Bench:
    """A writer, and the fields that it left to other managers."""

    def __init__(self, client: ClusterClient, *, force: bool = False) -> None:
        self.client = client
        self.writer = ObjectWriter(client, OURS, force)
        self.last: JsonObject | None = None
        self.left: list[tuple[str, str]] = []

    async def write(self, wanted: JsonObject, drift: DriftPolicy = CORRECT, *, look: bool = True) -> JsonValue:
        """Write an object, and return its data after the write. With ``look``, the live object is read first."""
        live = await look_up(self.client, key("a")) if look else None
        done = await self.writer.write(key("a"), wanted, live, before=lambda: self.last, drift=drift)
        self.last = wanted
        self.left = [(one.manager, one.field) for one in done.left]
        return done.live["data"]


@asynccontextmanager
async def bench(*, force: bool = False) -> AsyncIterator[Bench]:
    async with memory_cluster() as client:
        yield Bench(client, force=force)


async def test_fields_taken_from_us_are_taken_back_if_drift_is_corrected(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.write(obj(v="1", w="1"))
        await at.client.apply(obj(v="9"), field_manager="ann", force=True)
        assert await at.write(obj(v="2", w="2")) == {"v": "2", "w": "2"}


async def test_fields_taken_from_us_are_left_if_drift_is_only_reported(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.write(obj(v="1", w="1"))
        await at.client.apply(obj(v="9"), field_manager="ann", force=True)
        assert await at.write(obj(v="2", w="2"), WARN) == {"v": "9", "w": "2"}
        assert at.left == [("ann", ".data.v")]


async def test_fields_that_never_were_ours_conflict(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.write(obj(w="1"))
        await at.client.apply(obj(v="9"), field_manager="ann")
        with pytest.raises(FieldConflictError, match=r"ConfigMap default/a: \.data\.v belongs to 'ann'"):
            await at.write(obj(v="2", w="2"))
    async with bench(force=True) as at:
        await at.write(obj(w="1"))
        await at.client.apply(obj(v="9"), field_manager="ann")
        assert await at.write(obj(v="2", w="2")) == {"v": "2", "w": "2"}


async def test_a_helm_write_between_read_and_write_is_overwritten(autojump_clock: MockClock) -> None:
    for drift in (CORRECT, WARN):
        async with bench() as at:
            await at.client.apply(obj(v="1"), field_manager="helm")
            assert await at.write(obj(v="2"), drift, look=False) == {"v": "2"}


async def test_fields_written_by_helm_are_adopted_first(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.client.apply(obj(v="1", w="1"), field_manager="helm")
        assert await at.write(obj(v="2")) == {"v": "2"}
        live = await at.client.get(key("a"))
        assert [find_str(entry, "manager") for entry in find_list(live, "metadata", "managedFields")] == [OURS]


async def test_ignored_fields_of_others_are_neither_overwritten_nor_released(autojump_clock: MockClock) -> None:
    ignoring = DriftPolicy(ignore=(IgnoreRule(("/data/v",), kind="ConfigMap"),))
    assert rules_of(ignoring) == (*ignoring.ignore, *BUILT_IN)
    async with bench() as at:
        await at.write(obj(v="1", w="1"), ignoring)
        await at.client.apply(obj(v="9"), field_manager="ann", force=True)
        assert await at.write(obj(v="2", w="2"), ignoring) == {"v": "9", "w": "2"}
        await at.client.apply(obj(), field_manager="ann")
        assert await at.write(obj(v="3", w="2"), ignoring) == {"v": "3", "w": "2"}


async def test_an_unrelated_conflict_is_raised(autojump_clock: MockClock) -> None:
    async with bench() as at:
        stale = obj(v="1")
        await at.write(stale)
        metadata: JsonObject = {"name": "a", "namespace": "default", "resourceVersion": "1"}
        with pytest.raises(ConflictError) as caught:
            await at.writer.write(key("a"), {**stale, "metadata": metadata}, None, before=lambda: None, drift=CORRECT)
        assert caught.value.transient
