"""Facts about live objects: which observed state counts, pending evaluations of rules, and the wait for a missing status."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Script, json_reply, status_reply
from tests.cluster.support.health_setup import EPOCH, WIDGET, Phases, define_widgets, widget
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.health.facts import GRACE_S, GUARD_S, RETRY_S, HealthFacts
from wharfinger.cluster.health.health import Fact
from wharfinger.cluster.health.rules import HealthRule
from wharfinger.cluster.objects.desired import Identity, identity_of
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.resource import ObjectKey

A = ObjectKey(WIDGET, "default", "a")
RULE = HealthRule("example.test/v1", "Widget", "Good", in_progress="Busy", failed="Bad")


@dataclass
class World:
    facts: HealthFacts
    rules: dict[Identity, HealthRule] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def fact(self, key: ObjectKey = A) -> Fact:
        found = self.facts.get(identity_of(key))
        assert found is not None
        return found

    def state(self, key: ObjectKey = A) -> Readiness:
        return self.fact(key).certain_at(trio.current_time())


@asynccontextmanager
async def world(
    client: ClusterClient, phases: Phases | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[World]:
    rules: dict[Identity, HealthRule] = {}
    told: list[str] = []
    facts = HealthFacts(client, phases, rules.get, lambda identity: told.append(identity.name), now)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(facts.run)
        yield World(facts, rules, told)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def scripted(script: Script, now: Callable[[], datetime] = lambda: EPOCH) -> AsyncIterator[World]:
    transport = FaultyTransport(script)
    async with (
        open_client(Connection("http://api.example"), transport=transport) as client,
        world(client, now=now) as one,
    ):
        yield one


def at(version: int, obj: JsonObject, uid: str = "u", **status: JsonValue) -> JsonObject:
    """Return the object with this resource version and UID, and with the other arguments as its status."""
    metadata: JsonObject = {**find_object(obj, "metadata"), "resourceVersion": str(version), "uid": uid}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return {**obj, "metadata": metadata, **({"status": {**status}} if status else {})}


def ready(value: str) -> JsonValue:
    return [{"type": "Ready", "status": value, "reason": "R"}]


def no_answers(request: httpx.Request) -> Answer:
    return status_reply(500, "InternalError", "no")


# -- which state counts


async def test_states_from_before_an_apply_do_not_count_after_it(autojump_clock: MockClock) -> None:
    async with scripted(no_answers) as one:
        one.facts.saw(A, at(5, widget("a"), conditions=ready("True")))
        assert one.state() == Current()
        one.facts.answered(A, at(9, widget("a"), conditions=ready("False")))
        assert one.state() == InProgress("R")
        one.facts.saw(A, at(7, widget("a"), conditions=ready("True")))  # the watch is late
        one.facts.saw(A, at(8, widget("a"), uid="former", conditions=ready("True")))
        assert one.state() == InProgress("R")
        one.facts.saw(A, at(9, widget("a"), conditions=ready("False")))
        one.facts.saw(A, at(10, widget("a"), conditions=ready("True")))
        assert one.state() == Current()
        assert one.told == ["a", "a", "a"]


async def test_an_answer_older_than_the_last_watch_event_does_not_count(autojump_clock: MockClock) -> None:
    async with scripted(no_answers) as one:
        one.facts.saw(A, at(9, widget("a"), conditions=ready("True")))
        one.facts.answered(A, at(8, widget("a"), conditions=ready("False")))
        assert one.state() == Current()


async def test_states_of_a_restored_server_count_after_the_guard_time(autojump_clock: MockClock) -> None:
    """A server that is restored from a backup continues with lower resource versions.

    A wait for higher versions could last forever.
    """
    async with scripted(no_answers) as one:
        one.facts.answered(A, at(9000, widget("a"), conditions=ready("True")))
        await trio.sleep(GUARD_S)
        one.facts.saw(A, at(3, widget("a"), conditions=ready("False")))
        assert one.state() == InProgress("R")


async def test_non_numeric_versions_are_accepted_in_order_of_arrival(autojump_clock: MockClock) -> None:
    async with scripted(no_answers) as one:
        for value, expected in (("True", Current()), ("False", InProgress("R")), ("True", Current())):
            obj = at(1, widget("a"), conditions=ready(value))
            find_object(obj, "metadata")["resourceVersion"] = "opaque"
            one.facts.saw(A, obj)
            assert one.state() == expected


async def test_a_lost_object_is_forgotten_and_reported_once(autojump_clock: MockClock) -> None:
    async with scripted(no_answers) as one:
        one.facts.lost(A)
        assert one.told == []
        one.facts.saw(A, at(1, widget("a"), phase="x"))
        one.facts.lost(A)
        one.facts.lost(A)
        assert (one.told, one.facts.get(identity_of(A)), len(one.facts)) == (["a", "a"], None, 0)


async def test_an_object_of_unexpected_shape_is_in_progress(autojump_clock: MockClock) -> None:
    async with scripted(no_answers) as one:
        one.facts.saw(
            A, {**widget("a"), "metadata": {"name": "a", "uid": 5, "creationTimestamp": 5}, "status": {"conditions": 5}}
        )
        assert isinstance(one.state(), InProgress)
        one.facts.saw(A, {**widget("a"), "metadata": {"creationTimestamp": 5}})
        await trio.sleep(1)
        assert not isinstance(one.state(), Failed)


# -- the grace time for a missing status


async def test_a_kind_with_a_status_gets_a_grace_time_to_write_it(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, world(client) as one:
        await define_widgets(client)
        one.facts.answered(A, await client.create(widget("a")))
        assert not isinstance(one.state(), Current)  # it is not known yet whether the kind declares a status
        await wait_all_tasks_blocked()
        await trio.sleep(1)
        assert one.state() == InProgress("its controller has not written a status yet")
        assert one.facts.next_grace < inf
        await trio.sleep(GRACE_S)
        assert one.state() == Current()
        one.told.clear()
        one.facts.end_graces()
        assert (one.told, one.facts.next_grace) == (["a"], inf)


async def test_a_status_ends_the_grace_time(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, world(client) as one:
        await define_widgets(client)
        one.facts.answered(A, await client.create(widget("a")))
        await trio.sleep(1)
        one.facts.saw(A, await client.merge_patch(A, {"status": {"phase": "x"}}, subresource="status"))
        assert (one.state(), one.facts.next_grace) == (Current(), inf)


async def test_an_object_older_than_the_grace_time_gets_none(autojump_clock: MockClock) -> None:
    async with (
        memory_cluster() as client,
        world(client, now=lambda: datetime.now(UTC) + timedelta(seconds=GRACE_S + 5)) as one,
    ):
        await define_widgets(client)
        one.facts.saw(A, await client.create(widget("a")))
        await trio.sleep(1)
        assert one.state() == Current()


@pytest.mark.parametrize("made", ["", "yesterday", "2030-01-01T00:00:00Z"])
async def test_an_invalid_creation_time_counts_as_now(autojump_clock: MockClock, made: str) -> None:
    async with scripted(lambda _: json_reply({**widget_crd()})) as one:
        obj = at(1, widget("a"))
        find_object(obj, "metadata")["creationTimestamp"] = made
        one.facts.saw(A, obj)
        await trio.sleep(GRACE_S / 2)
        assert one.state() == InProgress("its controller has not written a status yet")
        await trio.sleep(GRACE_S / 2)
        assert one.state() == Current()


def definition(**version: JsonValue) -> JsonObject:
    return {"spec": {"versions": [{"name": "v1", **version}, {"name": "v2", "subresources": {"status": {}}}]}}


@pytest.mark.parametrize(
    "answer",
    [
        json_reply(definition()),
        json_reply({"spec": {"versions": 5}}),
        status_reply(404, "NotFound", "there is none"),
        status_reply(403, "Forbidden", "not yours"),
    ],
)
async def test_a_kind_without_a_status_is_current_at_once(autojump_clock: MockClock, answer: Answer) -> None:
    asked: list[str] = []

    def serve(request: httpx.Request) -> Answer:
        asked.append(request.url.path)
        return answer

    async with scripted(serve) as one:
        for name in ("a", "b"):
            one.facts.saw(ObjectKey(WIDGET, "default", name), at(1, widget(name)))
            await trio.sleep(0.5)
            assert one.state(ObjectKey(WIDGET, "default", name)) == Current()
    assert asked == ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.test"]


async def test_built_in_kinds_cause_no_definition_lookup(autojump_clock: MockClock) -> None:
    key = ObjectKey(CONFIG_MAP, "default", "a")
    async with scripted(no_answers) as one:
        one.facts.saw(key, at(1, config_map("a")))
        assert one.state(key) == Current()


async def test_a_failed_definition_lookup_is_retried(autojump_clock: MockClock) -> None:
    answers = [status_reply(500, "InternalError", "no")] * 30

    def serve(request: httpx.Request) -> Answer:
        return answers.pop() if answers else json_reply(definition())

    async with scripted(serve) as one:
        one.facts.saw(A, at(1, widget("a")))
        await trio.sleep(1)
        assert isinstance(one.state(), InProgress)
        assert one.facts.open == 1
        await trio.sleep(300)
        assert (one.state(), one.facts.open) == (Current(), 0)


# -- rules


@asynccontextmanager
async def ruled(phases: Phases) -> AsyncIterator[tuple[World, ClusterClient]]:
    """Open a world with one healthy Widget, for which a health rule exists."""
    async with memory_cluster() as client, world(client, phases) as one:
        await define_widgets(client)
        one.rules[identity_of(A)] = RULE
        await client.create(widget("a"))
        one.facts.saw(A, await client.merge_patch(A, {"status": {"phase": "Good"}}, subresource="status"))
        yield one, client


async def test_a_failed_health_rule_worker_is_retried_and_the_state_is_uncertain_meanwhile(
    autojump_clock: MockClock,
) -> None:
    phases = Phases()
    async with ruled(phases) as (one, client):
        await trio.sleep(1)
        assert one.state() == Current()
        phases.failing = True
        one.facts.saw(A, await client.merge_patch(A, {"metadata": {"labels": {"x": "y"}}}))
        await trio.sleep(1)
        assert one.state() == InProgress("its health is being determined")
        assert one.fact().at(trio.current_time()) == Current()  # the last known state remains
        phases.failing = False
        await trio.sleep(2 * RETRY_S)
        assert one.state() == Current()


async def test_changes_during_an_evaluation_are_evaluated_afterwards(autojump_clock: MockClock) -> None:
    phases = Phases()
    async with ruled(phases) as (one, client):
        await trio.sleep(1)
        phases.hold = trio.Event()
        for phase in ("Busy", "Bad", "Good", "Bad"):
            one.facts.saw(A, await client.merge_patch(A, {"status": {"phase": phase}}, subresource="status"))
            await wait_all_tasks_blocked()
        phases.hold.set()
        await trio.sleep(1)
        assert one.state() == Failed("failed according to its health rule")


async def test_an_object_lost_during_its_evaluation_stays_lost(autojump_clock: MockClock) -> None:
    phases = Phases()
    phases.hold = trio.Event()
    async with ruled(phases) as (one, client):
        await wait_all_tasks_blocked()
        one.facts.lost(A)
        phases.hold.set()
        await trio.sleep(1)
        assert one.facts.get(identity_of(A)) is None
        phases.failing = True
        phases.hold = trio.Event()
        one.facts.saw(A, await client.get(A))
        await wait_all_tasks_blocked()
        one.facts.lost(A)
        phases.hold.set()
        await trio.sleep(1)
        assert (one.facts.get(identity_of(A)), one.facts.open) == (None, 0)


async def test_a_rule_changed_during_its_evaluation_is_evaluated_again(autojump_clock: MockClock) -> None:
    phases = Phases()
    phases.hold = trio.Event()
    async with ruled(phases) as (one, _):
        await wait_all_tasks_blocked()
        one.rules[identity_of(A)] = HealthRule("example.test/v1", "Widget", "Other")
        phases.hold.set()
        await trio.sleep(1)
        assert one.state() == InProgress("not ready according to its health rule")


async def test_reevaluation_happens_only_if_the_rule_changed(autojump_clock: MockClock) -> None:
    phases = Phases()
    async with ruled(phases) as (one, client):
        await trio.sleep(1)
        asked = len(phases.asked)
        one.facts.judge_again(A)
        one.facts.judge_again(ObjectKey(WIDGET, "default", "unknown"))
        await trio.sleep(1)
        assert len(phases.asked) == asked
        one.rules[identity_of(A)] = HealthRule("example.test/v1", "Widget", "Other")
        one.facts.judge_again(A)
        assert one.fact().open
        await trio.sleep(1)
        assert one.state() == InProgress("not ready according to its health rule")
        await client.delete(A)
        one.rules[identity_of(A)] = RULE
        one.facts.judge_again(A)
        await trio.sleep(1)
        assert one.fact().open  # the watch reports the deletion
