"""Upgrades: the requests that they send, their behavior during faults, and the cases in which they are refused."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import config_map as config_map_object
from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import KEEP, WIDGET, Bench, bench, cluster, open_engine
from tests.cluster.support.release_requests import config_map, deployment, objects_of, request
from wharfinger.cluster.api.errors import InvalidError
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import ForeignObjectError
from wharfinger.cluster.releases.late_tidying import TIDY_S
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest
from wharfinger.cluster.releases.upgrade import EmptyReleaseError
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import JsonObject, encode_json, find
from wharfinger.kube.resource import ObjectKey, name_of

SIX = (
    "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n",
    "---\napiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {a: b}\n",
    "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {app: web}}\n",
    (
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n"
        "spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}\n"
    ),
)


def six(version: str = "1", name: str = "web") -> ReleaseRequest:
    """Return the request of a typical chart, with six objects of six kinds."""
    parts = (*SIX, config_map("web", v=version), deployment("web"))
    return request(*(part.replace("name: web", f"name: {name}") for part in parts), name=name)


def status(code: int, reason: str, **headers: str) -> httpx.Response:
    """Return a failure with the body that an API server sends."""
    body: JsonObject = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": reason}
    return httpx.Response(code, content=encode_json(body), headers={"content-type": "application/json", **headers})


# -- requests


async def test_an_install_of_six_objects_takes_fifteen_requests(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await wait_all_tasks_blocked()
        at.transport.requests.clear()
        await at.engine.upgrade(six())
        asked = Counter(request.partition(" ")[0] for request in at.transport.requests)
        assert asked == {"GET": 7, "POST": 1, "PATCH": 6, "PUT": 1}
        assert at.transport.requests[7] == "POST secrets"
        assert at.transport.requests[-1] == "PUT sh.helm.release.v1.web.v1"


async def test_objects_of_known_kinds_are_not_read_before_an_install(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(six())
        await at.client.create(config_map_object("theirs"))
        await wait_all_tasks_blocked()
        at.transport.requests.clear()
        await at.engine.upgrade(six(name="next"))
        asked = Counter(request.partition(" ")[0] for request in at.transport.requests)
        assert asked == {"GET": 1, "POST": 1, "PATCH": 6, "PUT": 1}  # the GET reads the namespace
        at.transport.requests.clear()
        with pytest.raises(ForeignObjectError, match="ConfigMap default/theirs"):
            await at.engine.upgrade(six(name="theirs"))
        assert not at.transport.writes


async def test_an_upgrade_writes_only_changed_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(six())
        await wait_all_tasks_blocked()
        at.transport.requests.clear()
        await at.engine.upgrade(six("2"))
        assert at.transport.writes == ["PATCH web", "POST secrets"]
        assert not [
            one for one in at.transport.requests if one.startswith("GET")
        ]  # the watch knows the Deployment already


@pytest.mark.parametrize("manager", ["helm", "ann"])
async def test_an_object_with_fields_of_another_manager_is_read(manager: str, autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1", w="1")))
        theirs: JsonObject = {"v": "1"} if manager == "helm" else {"z": "1"}
        edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": theirs}
        edit["metadata"] = {"name": "a", "namespace": "default"}
        await at.client.apply(edit, field_manager=manager)
        await wait_all_tasks_blocked()
        at.transport.requests.clear()
        await at.engine.upgrade(request(config_map("a", w="2")))
        assert at.transport.requests.count("GET a") == 1
        left = (
            {"w": "2"} if manager == "helm" else {"w": "2", "z": "1"}
        )  # fields of helm are adopted, so that they can be removed
        assert (await at.config_maps())["a"]["data"] == left


@pytest.mark.parametrize("heard", [True, False])
async def test_an_upgrade_leaves_the_field_of_an_autoscaler(*, heard: bool, autojump_clock: MockClock) -> None:
    def wanted(version: int) -> ReleaseRequest:
        manifest = deployment("web", f"registry.example/web:{version}")
        return request(manifest.replace("spec:\n  selector", "spec:\n  replicas: 2\n  selector", 1))

    async with bench() as at:
        await at.engine.upgrade(wanted(1))
        await wait_all_tasks_blocked()
        web = ObjectKey(await at.client.resource_type("apps/v1", "Deployment"), "default", "web")
        patch = httpx.Request(
            "PATCH",
            "http://localhost/apis/apps/v1/namespaces/default/deployments/web/scale?fieldManager=kube-controller-manager",
            headers={"content-type": "application/merge-patch+json"},
            json={"spec": {"replicas": 7}},
        )
        assert (await at.transport.handle_async_request(patch)).status_code == 200
        if heard:
            await wait_all_tasks_blocked()
        await at.engine.upgrade(wanted(2))
        assert find(await at.client.get(web), "spec", "replicas") == 7


@pytest.mark.slow
async def test_a_second_pass_over_many_releases_sends_no_requests(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        wanted = [six(name=f"web-{number}") for number in range(10)]
        async with trio.open_nursery() as nursery:
            for one in wanted:
                nursery.start_soon(at.engine.upgrade, one)
        await trio.sleep(60)
        at.transport.requests.clear()
        for one in wanted:
            assert (await at.engine.upgrade(one)).outcome is Outcome.UNCHANGED
        assert at.transport.requests == []
        await trio.sleep(599)
        assert at.transport.writes == []


@pytest.mark.slow
async def test_an_unchanged_release_is_not_written_after_a_restart(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(six())
        transport.requests.clear()
        async with open_engine(client) as engine:
            engine.expect([six().owner])
            await engine.restore("web", "default")
            await trio.sleep(3600)
            assert (await engine.upgrade(six())).outcome is Outcome.UNCHANGED
            assert engine.unchanged(six()) is not None
        assert transport.writes == []
        assert [one for one in transport.requests if one == "GET web"] == []  # the list of its kind contained it


async def test_a_changed_object_is_read_again(autojump_clock: MockClock) -> None:
    async with bench() as at:
        warn = replace(request(config_map("a", v="1"), config_map("b", v="1")), drift=DriftPolicy(DriftMode.WARN))
        await at.engine.upgrade(warn)
        edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"v": "9"}}
        await at.client.apply(
            {**edit, "metadata": {"name": "a", "namespace": "default"}}, field_manager="ann", force=True
        )
        await trio.sleep(60)
        assert at.engine.drifts(warn.owner) != ()
        at.transport.requests.clear()
        await at.engine.upgrade(warn)
        assert {"GET a", "GET b"} & set(at.transport.requests) == {"GET a"}


async def test_an_object_being_deleted_is_read(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(six())
        web = key("web")
        await at.client.merge_patch(web, {"metadata": {"finalizers": ["example.test/hold"]}})
        old = find(await at.client.get(web), "metadata", "uid")
        await at.client.delete(web)
        await trio.sleep(60)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, replace(six(), values={"other": True}))
            await trio.sleep(60)
            await at.client.merge_patch(web, {"metadata": {"finalizers": None}})
        assert find(await at.client.get(web), "metadata", "uid") != old


@pytest.mark.parametrize("wanted", ["1", "2"])
async def test_after_a_restart_the_objects_of_an_interrupted_revision_are_compared(
    wanted: str, autojump_clock: MockClock
) -> None:
    """The second revision fails after one of its two objects was written. Its record does not show which one."""

    def pair(version: str) -> ReleaseRequest:
        return request(config_map("a", v=version), config_map("b", v=version))

    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(pair("1"))
            transport.fault = lambda asked: (
                status(422, "Invalid") if asked.method == "PATCH" and asked.url.path.endswith("/b") else None
            )
            with pytest.raises(InvalidError):
                await engine.upgrade(pair("2"))
            transport.fault = lambda _: None
        async with open_engine(client) as engine:
            await engine.restore("web", "default")
            await engine.upgrade(pair(wanted))
        resource = await client.resource_type("v1", "ConfigMap")
        maps = {name_of(one): one.get("data") for one in (await client.list(resource, "default")).items}
        assert {name: maps[name] for name in ("a", "b")} == {"a": {"v": wanted}, "b": {"v": wanted}}


# -- faults


async def end_state(at: Bench) -> tuple[object, ...]:
    """Return the ConfigMaps and the statuses of the revisions after `story`."""
    maps = {name: item.get("data") for name, item in (await at.config_maps()).items()}
    statuses = [one.status.value for one in await at.engine.history("web", "default")]
    return maps, statuses


async def story(at: Bench) -> None:
    """Install a release, and upgrade it so that one object changes, one is removed and one is new."""
    await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
    await at.engine.upgrade(request(config_map("a", v="2"), config_map("c")))


FAULTS: dict[str, Callable[[], Exception | httpx.Response]] = {
    "refused": lambda: httpx.ConnectError("refused"),
    "silent": lambda: httpx.ReadTimeout("too slow"),
    "500": lambda: status(500, "InternalError"),
    "429": lambda: status(429, "TooManyRequests", **{"retry-after": "3"}),
    "409": lambda: status(409, "Conflict"),
}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.unmeasured
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_request_may_fail_once(fault: str, autojump_clock: MockClock) -> None:
    async with bench() as at:
        await story(at)
        good, total = await end_state(at), len(at.transport.requests)
    for number in range(total):
        async with bench() as at:
            seen = [0]

            def fail(
                asked: httpx.Request, seen: list[int] = seen, number: int = number
            ) -> Exception | httpx.Response | None:
                if asked.url.path in {"/api", "/apis"} or {"watch", "limit"} & set(asked.url.params):
                    return None
                seen[0] += 1
                return FAULTS[fault]() if seen[0] == number + 1 else None

            at.transport.fault = fail
            await story(at)
            assert await end_state(at) == good, number


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_every_answer_may_be_lost_once(autojump_clock: MockClock) -> None:
    """A write may be carried out although its answer is lost. The engine then repeats the write or reads the object."""
    async with bench() as at:
        await story(at)
        good, total = await end_state(at), len(at.transport.requests)
    for number in range(total):
        async with bench() as at:
            at.transport.lose_answer_of = number
            await story(at)
            assert await end_state(at) == good, number


async def test_a_permanent_failure_is_raised_at_once_and_named(autojump_clock: MockClock) -> None:
    async with bench() as at:
        start = trio.current_time()
        with pytest.raises(InvalidError, match=r"Deployment\.apps default/Not_A_Name"):
            await at.engine.upgrade(request(config_map("a"), deployment("Not_A_Name")))
        assert trio.current_time() - start < 1
        await trio.sleep(3600)
        assert [write for write in at.transport.writes if "Not_A_Name" in write] == ["PATCH Not_A_Name"]


async def test_releases_do_not_wait_for_each_others_failing_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.transport.fault = lambda asked: (
            httpx.ConnectError("refused") if asked.method == "PATCH" and asked.url.path.endswith("/stuck") else None
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upgrade_in_vain, at, request(config_map("stuck"), name="bad"))
            await trio.sleep(0.05)
            start = trio.current_time()
            await at.engine.upgrade(request(config_map("fine")))
            assert trio.current_time() - start < 0.1


async def upgrade_in_vain(at: Bench, wanted: ReleaseRequest) -> None:
    with pytest.raises(Exception, match="refused"):
        await at.engine.upgrade(wanted)


async def test_progress_lists_unapplied_objects_with_the_reason(autojump_clock: MockClock) -> None:
    told: list[Laggards] = []
    async with bench() as at:
        broken = [True, True]

        def fault(asked: httpx.Request) -> Exception | None:
            return httpx.ConnectError("refused") if asked.method == "PATCH" and broken and broken.pop() else None

        at.transport.fault = fault
        await at.engine.upgrade(request(config_map("a")), progress=told.append)
        messages = {state.message for laggards in told for state in laggards.values()}
        assert any("refused" in message for message in messages)


async def test_a_failed_repair_or_early_object_leaves_no_row(autojump_clock: MockClock) -> None:
    (early,) = objects_of(deployment("Not_A_Name"))
    wanted = request(config_map("a"))
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            with pytest.raises(InvalidError):
                await engine.apply_early("web", "default", [early])
            assert engine.statistics().table.rows == 0
            await engine.upgrade(wanted)
        await client.delete(key("a"))
        async with open_engine(client) as engine:
            transport.fault = lambda asked: status(422, "Invalid") if asked.method == "PATCH" else None
            with pytest.raises(InvalidError):
                await engine.upgrade(wanted)
            assert engine.statistics().table.rows == 0
            transport.fault = lambda _: None
            assert (await engine.upgrade(wanted)).outcome is Outcome.UNCHANGED
            assert engine.statistics().table.rows == 1


# -- superseding


async def test_a_superseded_upgrade_ends_at_once_and_the_next_continues(autojump_clock: MockClock) -> None:
    async with bench() as at:
        at.transport.fault = lambda asked: (
            httpx.ConnectError("refused") if asked.method == "PATCH" and asked.url.path.endswith("/b") else None
        )
        start = trio.current_time()
        with trio.move_on_after(0.2):
            await at.engine.upgrade(request(config_map("a"), config_map("b")))
        assert trio.current_time() - start < 0.3
        at.transport.fault = lambda _: None
        before = len(at.transport.requests)
        await trio.sleep(3600)
        assert [one for one in at.transport.requests[before:] if one == "PATCH b"] == []
        await at.engine.upgrade(request(config_map("a"), config_map("c")))
        assert set(await at.config_maps()) == {"a", "c"}


async def test_a_hanging_request_does_not_block_the_next_upgrade(autojump_clock: MockClock) -> None:
    async with bench() as at:
        never = trio.Event()
        at.transport.fault = lambda asked: never if asked.method == "PATCH" else None
        with trio.move_on_after(1):
            await at.engine.upgrade(request(config_map("a", v="1")))
        at.transport.fault = lambda _: None
        start = trio.current_time()
        await at.engine.upgrade(request(config_map("a", v="2")))
        assert trio.current_time() - start < 1
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}


async def test_of_two_releases_with_one_object_only_one_gets_it(autojump_clock: MockClock) -> None:
    async with bench() as at:
        errors: list[ForeignObjectError] = []

        async def install(name: str) -> None:
            try:
                await at.engine.upgrade(request(config_map("a", by=name), name=name))
            except ForeignObjectError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(install, "web")
            nursery.start_soon(install, "db")
        (error,) = errors
        live = await at.client.get(key("a"))
        winner = find(live, "metadata", "labels", "wharfinger.dev/release")
        assert live["data"] == {"by": winner}
        assert f"ConfigMap default/a belongs to the release default/{winner}" in str(error)
        assert sorted(
            [one.status.value for name in ("web", "db") for one in await at.engine.history(name, "default")]
        ) == [
            "deployed",
            "failed",
        ]


async def test_fields_taken_by_another_process_are_left_in_warn_mode(autojump_clock: MockClock) -> None:
    async with bench() as at:
        warn = replace(request(config_map("a", v="1", w="1")), drift=DriftPolicy(DriftMode.WARN))
        await at.engine.upgrade(warn)
        edit: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"v": "9"}}
        metadata: JsonObject = {"name": "a", "namespace": "default"}
        await at.client.apply({**edit, "metadata": metadata}, field_manager="ann", force=True)
        await trio.sleep(5)
        assert [str(drift) for drift in at.engine.drifts(warn.owner)] == ["ConfigMap default/a: /data/v by ann"]
        changed = replace(request(config_map("a", v="2", w="2")), drift=warn.drift)
        result = await at.engine.upgrade(changed)
        assert (await at.client.get(key("a")))["data"] == {"v": "9", "w": "2"}
        assert {str(where): [one.field for one in left] for where, left in result.left.items()} == {
            "ConfigMap default/a": [".data.v"]
        }
        await trio.sleep(5)
        still = ["ConfigMap default/a: /data/v by ann"]
        assert [str(drift) for drift in at.engine.drifts(warn.owner)] == still, (
            "the field left to the other manager is still drift"
        )
        await at.engine.upgrade(replace(changed, drift=DriftPolicy()))
        assert (await at.client.get(key("a")))["data"] == {"v": "2", "w": "2"}
        await trio.sleep(5)
        assert at.engine.drifts(warn.owner) == ()


async def test_operations_of_a_release_run_one_at_a_time(autojump_clock: MockClock) -> None:
    async with bench() as at:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, request(config_map("a", v="1")))
            nursery.start_soon(at.engine.upgrade, request(config_map("a", v="2")))
            nursery.start_soon(at.engine.upgrade, request(config_map("a", v="3")))
        await trio.sleep(TIDY_S + 1)
        assert [one.status.value for one in await at.engine.history("web", "default")] == [
            "superseded",
            "superseded",
            "deployed",
        ]


# -- refusals


async def test_an_empty_release_is_refused_unless_allowed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
        at.transport.requests.clear()
        with pytest.raises(EmptyReleaseError, match="would delete all of its 2 objects; "):
            await at.engine.upgrade(request())
        assert at.transport.writes == []
        done = await at.engine.upgrade(replace(request(), prune_to_empty=True))
        assert len(done.pruned) == 2
        assert await at.config_maps() == {}
        await at.engine.upgrade(request(name="other"))
        await at.engine.upgrade(request(config_map("a")))
        with pytest.raises(EmptyReleaseError, match="would delete its only object; "):
            await at.engine.upgrade(request())


# -- definitions


async def test_definitions_are_upgraded_once(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(WIDGET, crds=(widget_crd(),)))
        at.transport.requests.clear()
        await at.engine.upgrade(request(WIDGET, config_map("a"), crds=(widget_crd(),)))
        assert "PATCH widgets.example.test" not in at.transport.writes
        wider = widget_crd()
        spec = wider["spec"]
        assert isinstance(spec, dict)
        names = spec["names"]
        assert isinstance(names, dict)
        names["shortNames"] = ["wd"]
        await at.engine.upgrade(request(WIDGET, crds=(wider,)))
        crd = await at.client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        live = await at.client.get(ObjectKey(crd, "", "widgets.example.test"))
        assert find(live, "spec", "names", "shortNames") == ["wd"]


async def test_an_object_deleted_during_its_apply_is_created_again(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        held = trio.Event()
        at.transport.fault = lambda asked: held if asked.method == "PATCH" and not held.is_set() else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, request(config_map("a", v="2"), config_map("b")))
            await wait_all_tasks_blocked()
            await at.client.delete(key("a"))
            held.set()
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}


async def test_retained_objects_stay_and_are_adopted_again(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("kept", KEEP, v="1"), config_map("a")))
        await at.engine.upgrade(request(config_map("a")))
        at.engine.prune()
        await trio.sleep(3700)
        assert set(await at.config_maps()) == {"a", "kept"}
        await at.engine.upgrade(request(config_map("a"), config_map("kept", KEEP, v="2")))
        assert (await at.client.get(key("kept")))["data"] == {"v": "2"}


async def test_early_objects_belong_to_their_release(autojump_clock: MockClock) -> None:
    async with bench() as at:
        (early,) = objects_of(config_map("a", v="1"))
        assert await at.engine.apply_early("web", "default", [early]) == (key("a"),)
        at.transport.requests.clear()
        await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        assert "PATCH a" not in at.transport.writes
