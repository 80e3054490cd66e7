"""The last event of an object, on a control plane with events of both APIs, ``v1`` and ``events.k8s.io/v1``."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import FaultyTransport, status_reply
from tests.cluster.support.release_requests import deployment, objects_of
from tests.scale import scaled
from wharfinger.cluster.api import object_events
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.api.object_events import MAX_CHARS, last_event
from wharfinger.cluster.api.raw_object import read_raw_object
from wharfinger.cluster.watch.object_waits import wait_ready
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)
EVENT = ResourceType("", "v1", "Event", "events", namespaced=True)


def workload(kind: str, group: str = "apps") -> ResourceType:
    return ResourceType(group, "v1", kind, f"{kind.lower()}s", namespaced=True)


def event(
    number: int,
    about: str,
    reason: str,
    *,
    kind: str = "Pod",
    uid: str = "u1",
    at: str = "2026-01-01T00:00:00Z",
    type_: str = "Warning",
    namespace: str = "default",
    message: str = "because",
) -> JsonObject:
    """Return an event of ``v1``, as ``client-go/tools/record`` writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about}.{number:016x}", "namespace": namespace},
        "involvedObject": {"kind": kind, "namespace": namespace, "name": about, "uid": uid},
        "reason": reason,
        "message": message,
        "type": type_,
        "count": 3,
        "firstTimestamp": "2025-01-01T00:00:00Z",
        "lastTimestamp": at,
        "source": {"component": "kubelet"},
    }


def newer_event(number: int, about: str, reason: str, *, at: str, series_at: str = "") -> JsonObject:
    """Return an event of ``events.k8s.io/v1`` from ``client-go/tools/events``, in the form in which ``v1`` lists it."""
    made = event(number, about, reason)
    made.update({"firstTimestamp": None, "lastTimestamp": None, "eventTime": at, "count": 0, "source": {}})
    made.update({"reportingComponent": "default-scheduler", "reportingInstance": "a", "action": "Scheduling"})
    if series_at:
        made["series"] = {"count": 9, "lastObservedTime": series_at}
    return made


async def said(client: ClusterClient, key: ObjectKey, *events: JsonObject, uid: str = "") -> str:
    for one in events:
        await client.create(one)
    return await last_event(client, key, uid)


async def test_the_newest_event_of_the_exact_object_is_reported(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        key = ObjectKey(POD, "default", "web")
        assert await said(client, key) == ""
        events = [
            event(1, "web", "Pulled", at="2026-01-01T00:00:02Z", type_="Normal"),
            event(2, "web", "BackOff", at="2026-01-01T00:00:09Z", message="restarting\n  failed container"),
            event(3, "web", "Older", at="2026-01-01T00:00:05Z"),
            event(4, "web", "Former", at="2026-01-01T00:01:00Z", uid="u0"),
            event(5, "other", "Other", at="2026-01-01T00:01:00Z"),
            event(6, "web", "Elsewhere", at="2026-01-01T00:01:00Z", namespace="kube-public"),
            event(7, "web", "OtherKind", at="2026-01-01T00:01:00Z", kind="Service"),
        ]
        assert await said(client, key, *events, uid="u1") == "BackOff: restarting failed container"
        assert await said(client, key) == "Former: because"


async def test_times_of_both_event_apis_are_compared(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        key = ObjectKey(POD, "default", "web")
        assert await said(client, key, event(1, "web", "Old", at="2026-01-01T00:00:05Z")) == "Old: because"
        newer = newer_event(2, "web", "FailedScheduling", at="2026-01-01T00:00:05.500000Z")
        assert await said(client, key, newer) == "FailedScheduling: because"
        assert await said(client, key, event(3, "web", "New", at="2026-01-01T00:00:06Z")) == "New: because"
        series = newer_event(
            4, "web", "Again", at="2025-01-01T00:00:00.000000Z", series_at="2026-01-01T00:00:07.000000Z"
        )
        assert await said(client, key, series) == "Again: because"


CHILDREN = [
    (workload("Deployment"), "web-5d59d67564", "ReplicaSet", True),
    (workload("Deployment"), "web-5d59d67564-x7k2p", "Pod", True),
    (workload("Deployment"), "web-api-x7k2p", "Pod", False),
    (workload("Deployment"), "web-0", "Pod", False),
    (workload("Deployment"), "web-5d59d67564", "ConfigMap", False),
    (workload("ReplicaSet"), "web-x7k2p", "Pod", True),
    (workload("DaemonSet"), "web-x7k2p", "Pod", True),
    (workload("StatefulSet"), "web-11", "Pod", True),
    (workload("StatefulSet"), "data-web-0", "PersistentVolumeClaim", True),
    (workload("StatefulSet"), "web-x7k2p", "Pod", False),
    (workload("Job", "batch"), "web-x7k2p", "Pod", True),
    (workload("Job", "batch"), "web-3-x7k2p", "Pod", True),
    (workload("Job", "batch"), "webs-x7k2p", "Pod", False),
]


@pytest.mark.parametrize(("resource", "child", "kind", "expected"), CHILDREN)
async def test_a_workload_reports_warnings_of_its_child_objects(
    autojump_clock: MockClock, resource: ResourceType, child: str, kind: str, expected: bool
) -> None:
    async with memory_cluster() as client:
        key = ObjectKey(resource, "default", "web")
        warning = event(1, child, "FailedScheduling", kind=kind, uid="another", message="0/3 nodes are available")
        await client.create(event(2, child, "Scheduled", kind=kind, at="2026-02-01T00:00:00Z", type_="Normal"))
        told = await said(client, key, warning, uid="u1")
        assert told == ("FailedScheduling: 0/3 nodes are available" if expected else "")


async def test_a_workload_without_child_warnings_reports_its_own_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        key = ObjectKey(workload("Deployment"), "default", "web")
        normal = event(1, "web", "ScalingReplicaSet", kind="Deployment", type_="Normal", message="scaled up")
        assert await said(client, key, normal, uid="u1") == "ScalingReplicaSet: scaled up"
        own = event(2, "web", "FailedCreate", kind="Deployment", at="2026-01-01T00:00:01Z")
        assert await said(client, key, own, uid="u1") == "FailedCreate: because"
        assert await said(client, key, uid="u2") == ""


async def test_objects_made_by_a_controller_are_recognized(autojump_clock: MockClock) -> None:
    """An event about an object that a controller created for a Deployment is reported for this Deployment."""
    async with memory_cluster(simulate=True) as client:
        (wanted,) = objects_of(deployment("web"))
        wanted["metadata"] = {"name": "web", "namespace": "default"}
        await client.apply(wanted, field_manager="test")
        web = ObjectKey(await client.resource_type("apps/v1", "Deployment"), "default", "web")
        with trio.fail_after(300):
            await wait_ready(client, [web])
        (made,) = (await client.list(workload("ReplicaSet"), "default")).items
        warning = event(1, name_of(made), "FailedCreate", kind="ReplicaSet", uid=find_str(made, "metadata", "uid"))
        assert await said(client, web, warning) == "FailedCreate: because"


async def test_events_of_cluster_scoped_objects_are_read_from_the_default_namespace(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        told = event(1, "node-1", "Rebooted", kind="Node")
        assert await said(client, ObjectKey(NODE, "", "node-1"), told) == "Rebooted: because"


async def test_long_messages_are_truncated(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        told = await said(client, ObjectKey(POD, "default", "web"), event(1, "web", "Long", message="x" * 1000))
        assert (len(told), told[-1]) == (MAX_CHARS, "…")


async def test_an_api_error_is_raised(autojump_clock: MockClock) -> None:
    transport = FaultyTransport(lambda _: status_reply(403, "Forbidden", "events is forbidden"))
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        with pytest.raises(ApiError, match="forbidden"):
            await last_event(client, ObjectKey(POD, "default", "web"))


STRANGE: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "2026-01-01T00:00:00", "9999-99-99"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["lastObservedTime", "name", "kind"]), inner)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 200), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["involvedObject", "reason", "message", "series", "lastTimestamp", "eventTime", "firstTimestamp"]
        ),
        STRANGE,
    )
)
def test_malformed_events_do_not_raise(strange: dict[str, JsonValue]) -> None:
    made = {**event(1, "web", "Fine"), **strange}
    raw = read_raw_object(encode_json(made), EVENT)
    for read in object_events._read((raw,)):
        assert isinstance(object_events._text(read), str)
        assert find_object(read, "metadata")


@pytest.mark.parametrize("resource", [POD, workload("Deployment")])
async def test_the_number_of_events_read_is_bounded(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, resource: ResourceType
) -> None:
    monkeypatch.setattr(object_events, "MAX_EVENTS", 1)
    async with (
        open_control_plane() as control_plane,
        open_client(
            Connection(LOCAL), transport=control_plane.transport(), options=ClientOptions(page_size=1)
        ) as client,
    ):
        key = ObjectKey(resource, "default", "web")
        later = event(2, "web", "Second", kind=resource.kind, at="2026-02-01T00:00:00Z")
        assert await said(client, key, event(1, "web", "First", kind=resource.kind), later) == "First: because"


def test_an_unparsable_time_counts_as_old() -> None:
    made = event(1, "web", "A", at="yesterday")
    assert object_events._time(made).year == 2025
    assert object_events._time({"lastTimestamp": "2026-01-01T00:00:00"}).tzinfo is not None
    assert object_events._time({}).year == 1
