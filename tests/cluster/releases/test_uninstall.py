"""Uninstalls of releases, with the real client and the control plane in memory."""

from collections import Counter
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import KEEP, WIDGET, bench, cluster, open_engine
from tests.cluster.support.release_requests import config_map, deployment, objects_of, request
from wharfinger.cluster.api.errors import InvalidError, NotFoundError, UnknownKindError
from wharfinger.cluster.releases.request import UninstallResult
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey


async def test_an_uninstall_deletes_objects_and_records(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("kept", KEEP)))
        await at.engine.upgrade(request(config_map("b"), config_map("kept", KEEP), deployment("web")))
        done = await at.engine.uninstall("web", "default")
        assert done.found
        assert [str(one) for one in done.deleted] == ["Deployment.apps default/web", "ConfigMap default/b"]
        assert {str(one): why for one, why in done.kept.items()} == {
            "ConfigMap default/kept": "helm.sh/resource-policy: keep"
        }
        assert await at.engine.history("web", "default") == []
        again = await at.engine.uninstall("web", "default")
        assert again == UninstallResult(found=False, kept=done.kept)


async def test_an_uninstall_waits_for_finalizers_and_reports_them(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a")))
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.test/hold"]}})
        told: list[Laggards] = []
        async with trio.open_nursery() as nursery:
            done: list[UninstallResult] = []

            async def run() -> None:
                done.append(await at.engine.uninstall("web", "default", progress=told.append))

            nursery.start_soon(run)
            await trio.sleep(60)
            assert done == []
            assert [state.message for state in told[-1].values()] == ["waits for finalizers: example.test/hold"]
            assert await at.statuses() == ["1 uninstalling Deletion in progress"]
            await at.client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
        assert [str(one) for one in done[0].deleted] == ["ConfigMap default/a"]


async def test_an_interrupted_uninstall_is_completed_by_the_next(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a")))
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.test/hold"]}})
        with trio.move_on_after(60):
            await at.engine.uninstall("web", "default")
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
        assert (await at.engine.uninstall("web", "default")).found
        with pytest.raises(NotFoundError):
            await at.client.get(key("a"))


async def test_an_object_being_deleted_is_created_again(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.test/hold"]}})
        old = find_str(await at.client.get(key("a")), "metadata", "uid")
        await at.client.delete(key("a"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.upgrade, request(config_map("a", v="2")))
            await trio.sleep(30)
            assert find_str(await at.client.get(key("a")), "metadata", "uid") == old
            await at.client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
        live = await at.client.get(key("a"))
        assert find_str(live, "metadata", "uid") != old
        assert live["data"] == {"v": "2"}


async def test_protected_kinds_are_deleted_only_on_request(autojump_clock: MockClock) -> None:
    wanted = replace(request(config_map("a")), objects=(*objects_of(config_map("a")), widget_crd()))
    manifest = (
        wanted.manifest
        + "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.test}\n"
    )
    async with bench() as at:
        await at.engine.upgrade(replace(wanted, manifest=manifest))
        done = await at.engine.uninstall("web", "default")
        assert list(done.kept.values()) == ["CustomResourceDefinition objects are only deleted on request"]
        await at.engine.upgrade(replace(wanted, manifest=manifest))
        done = await at.engine.uninstall("web", "default", delete_protected=True)
        assert done.kept == {}
        with pytest.raises(UnknownKindError):
            await at.client.resource_type("example.test/v1", "Widget")


async def test_orphaned_objects_lose_only_their_label(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        done = await at.engine.uninstall("web", "default", orphan=True)
        assert (done.found, done.deleted) == (True, ())
        assert set(done.kept.values()) == {"kept, as requested"}
        assert await at.engine.history("web", "default") == []
        live = await at.client.get(key("a"))
        assert find(live, "metadata", "labels") == {"app.kubernetes.io/managed-by": "Helm"}
        await at.client.delete(key("b"))
        at.engine.prune()
        await trio.sleep(7200)
        assert set(await at.config_maps()) == {"a"}
        await at.engine.upgrade(request(config_map("a", v="2")))
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}


async def test_an_uninstall_does_not_wait_for_objects_of_a_namespace_being_deleted(autojump_clock: MockClock) -> None:
    """Objects in a namespace that is being deleted may have finalizers that are never removed, so the uninstall does not wait
    for them. It deletes the objects outside of the namespace, and runs no hook.
    """
    role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\nrules: []\n"
    async with bench() as at:
        namespaces = await at.client.resource_type("v1", "Namespace")
        going = ObjectKey(namespaces, "", "going")
        metadata: JsonObject = {"name": "going", "finalizers": ["example.test/hold"]}
        await at.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        (hook,) = objects_of(config_map("hook", "annotations: {helm.sh/hook: pre-delete}"))
        await at.engine.upgrade(replace(request(config_map("a"), role), namespace="going", hooks=(hook,)))
        inside = ObjectKey(key("a").resource, "going", "a")
        await at.client.merge_patch(inside, {"metadata": {"finalizers": ["example.test/hold"]}})
        await at.client.delete(going)
        start = trio.current_time()
        done = await at.engine.uninstall("web", "going")
        assert trio.current_time() - start < 1
        assert [str(one) for one in done.deleted] == ["ClusterRole.rbac.authorization.k8s.io web"]
        assert await at.engine.history("web", "going") == []


async def test_custom_resources_are_deleted_before_their_operator(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(WIDGET, deployment("operator"), crds=(widget_crd(),)))
        widget = ObjectKey(await at.client.resource_type("example.test/v1", "Widget"), "default", "one")
        await at.client.merge_patch(widget, {"metadata": {"finalizers": ["example.test/hold"]}})
        at.transport.requests.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(at.engine.uninstall, "web", "default")
            await trio.sleep(30)
            assert [one for one in at.transport.writes if one.startswith("DELETE")] == ["DELETE one"]
            await at.client.merge_patch(widget, {"metadata": {"finalizers": None}})
        assert [one for one in at.transport.writes if one.startswith("DELETE")][1] == "DELETE operator"


async def test_an_incomplete_install_is_uninstalled_completely(autojump_clock: MockClock) -> None:
    async with bench() as at:
        with pytest.raises(InvalidError):
            await at.engine.upgrade(request(config_map("a"), deployment("Not_A_Name")))
        assert set(await at.config_maps()) == {"a"}
        done = await at.engine.uninstall("web", "default")
        assert [str(one) for one in done.deleted] == ["ConfigMap default/a"]
        assert await at.config_maps() == {}


async def test_an_uninstall_after_a_restart_uses_the_records(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(request(config_map("a"), config_map("b")))
        async with open_engine(client) as engine:
            transport.requests.clear()
            done = await engine.uninstall("web", "default")
            assert sorted(one.name for one in done.deleted) == ["a", "b"]
            # Each object is read and deleted, the namespace is read, and the record is updated and deleted.
            assert Counter(one.partition(" ")[0] for one in transport.requests) == {"GET": 3, "DELETE": 3, "PUT": 1}


@pytest.mark.slow
async def test_every_request_of_an_uninstall_may_fail_once(autojump_clock: MockClock) -> None:
    total = 7
    for number in range(total):
        async with bench() as at:
            await at.engine.upgrade(request(config_map("a"), config_map("b")))
            at.transport.requests.clear()
            left = [number]

            def fail(asked: httpx.Request, left: list[int] = left) -> Exception | None:
                if asked.url.path in {"/api", "/apis"} or {"watch", "limit"} & set(asked.url.params):
                    return None
                left[0] -= 1
                return httpx.ReadError("reset") if left[0] == -1 else None

            at.transport.fault = fail
            assert (await at.engine.uninstall("web", "default")).found
            assert left[0] < 0, "there were fewer requests"
            assert await at.config_maps() == {}
            assert await at.engine.history("web", "default") == []
