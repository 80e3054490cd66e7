"""CustomResourceDefinitions from the folder ``crds/`` of a chart: they are applied, waited for, and not written twice."""

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Hang, Reply, json_reply
from tests.cluster.support.release_bench import Faulty, cluster
from tests.cluster.support.scripted_client import Server
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.apply.writer import ObjectWriter
from wharfinger.cluster.crds.definitions import CrdError, Definitions, is_within
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner, owned
from wharfinger.cluster.watch.object_waits import Laggards, silent
from wharfinger.cluster.watch.readiness import InProgress
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.kube.resource import ObjectKey, name_of

OWNER = Owner("web", "default")

DEFINITIONS: JsonObject = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "apiextensions.k8s.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "customresourcedefinitions",
                            "scope": "Cluster",
                            "responseKind": {"kind": "CustomResourceDefinition"},
                        }
                    ],
                }
            ],
        }
    ],
}


def definitions(client: ClusterClient) -> Definitions:
    return Definitions(client, ObjectWriter(client, "wharfinger"))


async def test_a_definition_whose_names_are_refused_is_an_error(autojump_clock: MockClock) -> None:
    refused = widget_crd()
    refused["metadata"] = {"name": "widgets.example.test", "resourceVersion": "5", "uid": "u"}
    refused["status"] = {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "widget is in use"}]}

    def script(request: httpx.Request) -> Answer:
        if request.method == "PATCH":
            return json_reply(refused)
        if "watch" in request.url.params:
            return Reply(200, [Hang()])
        return json_reply({"kind": "List", "metadata": {"resourceVersion": "5"}, "items": [refused]})

    transport = FaultyTransport(Server(script, apis=DEFINITIONS))
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        with pytest.raises(CrdError, match=r"widgets\.example\.test: not accepted: widget is in use"):
            await definitions(client).apply(OWNER, [widget_crd()], {}, silent)


async def test_an_empty_list_sends_no_requests(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        assert await definitions(client).apply(OWNER, [], {}, silent) == ()
        assert transport.requests == []


async def test_a_definition_that_already_matches_is_not_written(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        (key,) = await definitions(client).apply(OWNER, [widget_crd()], {}, silent)
        await written(client, transport, key.name, widget_crd(), times=0)
        wider = widget_crd()
        spec = wider["spec"]
        assert isinstance(spec, dict)
        wider["spec"] = {**spec, "preserveUnknownFields": False}
        await written(client, transport, key.name, wider, times=1)


async def test_a_definition_installed_by_helm_is_adopted(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        await client.apply(widget_crd(), field_manager="helm")
        await written(client, transport, "widgets.example.test", widget_crd(), times=2)
        await written(client, transport, "widgets.example.test", widget_crd(), times=0)


async def test_a_definition_of_another_release_is_not_changed(autojump_clock: MockClock) -> None:
    """An apply would remove the ownership annotations of the other release, and both releases would fight for the CRD."""
    async with cluster() as (client, transport):
        made = await client.apply(owned(widget_crd(), Owner("db", "default")), field_manager="wharfinger")
        with pytest.raises(ForeignObjectError, match="belongs to the release default/db"):
            await written(client, transport, name_of(made), annotated(widget_crd()), times=0)
        await written(client, transport, name_of(made), widget_crd(), times=0)
        await client.apply(owned(widget_crd(), OWNER), field_manager="wharfinger", force=True)
        await written(client, transport, name_of(made), annotated(widget_crd()), times=1)


def annotated(crd: JsonObject) -> JsonObject:
    metadata = crd["metadata"]
    assert isinstance(metadata, dict)
    return {**crd, "metadata": {**metadata, "annotations": {"example.test/a": "b"}}}


async def written(client: ClusterClient, transport: Faulty, name: str, crd: JsonObject, *, times: int) -> None:
    """Apply a CRD that exists already, and check that this takes ``times`` writes."""
    resource = await client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    live = {item_name: item for item in (await client.list(resource)).items if (item_name := name)}
    transport.requests.clear()
    await definitions(client).apply(OWNER, [crd], live, silent)
    assert len(transport.writes) == times


@pytest.mark.parametrize(
    ("wanted", "live", "within"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}]}, True),
        ([1], [1, 2], False),
        ([1], 1, False),
        ({}, [], False),
        (True, 1, False),
        (1, 1.0, True),
        (None, None, True),
        ("a", "b", False),
    ],
)
def test_a_definition_within_the_live_one_is_recognized(wanted: JsonValue, live: JsonValue, within: bool) -> None:
    assert is_within(wanted, live) is within


async def wait_for_established(how: str) -> tuple[list[Laggards], JsonObject, float]:
    """Apply a CRD that is not established, and wait up to a minute. Return the reports, the CRD, and when the wait ended."""
    told: list[Laggards] = []
    crd = widget_crd()
    crd["metadata"] = {"name": "widgets.example.test", "annotations": {"wharfinger.dev/never-established": how}}
    async with cluster() as (client, _):
        with trio.move_on_after(60):
            await definitions(client).apply(OWNER, [crd], {}, told.append)
        took = trio.current_time()
        resource = await client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        return told, await client.get(ObjectKey(resource, "", "widgets.example.test")), took


async def test_a_definition_that_is_not_established_is_touched_once(autojump_clock: MockClock) -> None:
    began = trio.current_time()
    told, live, ended = await wait_for_established("until-touched")
    assert 10 <= ended - began < 12
    assert not any(state.overdue for laggards in told for state in laggards.values() if isinstance(state, InProgress))
    assert find_str(live, "metadata", "annotations", "wharfinger.dev/establish-asked-at")


async def test_a_definition_that_is_never_established_is_reported_with_a_remedy(autojump_clock: MockClock) -> None:
    told, live, _ = await wait_for_established("true")
    (state,) = told[-1].values()
    assert isinstance(state, InProgress)
    assert state.overdue
    assert state.message == (
        "the API server has not established it for 20 s (the initial names have been accepted); `kubectl annotate crd "
        "widgets.example.test --overwrite look=again` makes it try again; if that does not help, read the log of the API server"
    )
    assert find_str(live, "metadata", "annotations", "wharfinger.dev/establish-asked-at")
