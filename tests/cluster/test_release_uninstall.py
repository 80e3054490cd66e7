"""Taking releases away, over the real client and the control plane in memory."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.client_contract import key, widget_crd
from tests.cluster.release_bench import KEEP, bench
from tests.cluster.release_requests import config_map, deployment, objects_of, request
from wharfinger.cluster.errors import (
    NotFoundError,
    UnknownKindError,
)
from wharfinger.cluster.object_waits import Laggards
from wharfinger.cluster.release_engine import (
    UninstallResult,
)
from wharfinger.formats.json_value import find_str


async def test_uninstall(autojump_clock: MockClock) -> None:
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
        assert await at.engine.uninstall("web", "default") == UninstallResult(found=False)


async def test_uninstall_waits_for_finalizers_and_says_so(autojump_clock: MockClock) -> None:
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


async def test_an_interrupted_uninstall_is_finished_by_the_next(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a")))
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": ["example.test/hold"]}})
        with trio.move_on_after(60):
            await at.engine.uninstall("web", "default")
        await at.client.merge_patch(key("a"), {"metadata": {"finalizers": None}})
        assert (await at.engine.uninstall("web", "default")).found
        with pytest.raises(NotFoundError):
            await at.client.get(key("a"))


async def test_an_object_still_on_its_way_out_is_made_again(autojump_clock: MockClock) -> None:
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


async def test_protected_kinds_go_only_when_asked(autojump_clock: MockClock) -> None:
    wanted = replace(request(config_map("a")), objects=(*objects_of(config_map("a")), widget_crd()))
    manifest = (
        wanted.manifest
        + "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.test}\n"
    )
    async with bench() as at:
        await at.engine.upgrade(replace(wanted, manifest=manifest))
        done = await at.engine.uninstall("web", "default")
        assert list(done.kept.values()) == ["CustomResourceDefinition objects are only deleted when asked to"]
        await at.engine.upgrade(replace(wanted, manifest=manifest))
        done = await at.engine.uninstall("web", "default", delete_protected=True)
        assert done.kept == {}
        with pytest.raises(UnknownKindError):
            await at.client.resource_type("example.test/v1", "Widget")
