"""Releases that may change objects in their own namespace only."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import widget_crd
from tests.cluster.support.release_bench import cluster, open_engine
from tests.cluster.support.release_requests import config_map, objects_of, request
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.scope import (
    MAX_NAMED,
    OutsideNamespaceError,
    check_key,
    check_scope,
    is_outside,
    outside_of,
)
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.request import Outcome
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType

MAPS = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
OWNER = Owner("web", "default")
FAR = config_map("far", "namespace: kube-system", v="1")
NAMESPACE = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: made}\n"


@asynccontextmanager
async def confined() -> AsyncIterator[tuple[HttpClusterClient, ReleaseEngine, set[Owner]]]:
    """Open an engine that confines each release to its namespace, except the releases in the yielded set."""
    free: set[Owner] = set()
    async with cluster() as (client, _transport):
        options = EngineOptions(confined=lambda owner: owner not in free)
        async with open_engine(client, options) as engine:
            yield client, engine, free


async def change(client: HttpClusterClient, key: ObjectKey) -> None:
    """Change a field of a ConfigMap as another manager."""
    metadata: JsonObject = {"name": key.name, "namespace": key.namespace}
    theirs: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "changed"}}
    await client.apply(theirs, field_manager="ann", force=True)


def test_keys_outside_of_the_namespace_are_refused() -> None:
    inside, other, cluster_wide = (
        ObjectKey(MAPS, "default", "a"),
        ObjectKey(MAPS, "kube-system", "a"),
        ObjectKey(NAMESPACES, "", "default"),
    )
    assert [is_outside(key, OWNER) for key in (inside, other, cluster_wide)] == [False, True, True]
    check_key(inside, OWNER)
    with pytest.raises(OutsideNamespaceError, match="ConfigMap kube-system/a is outside of the namespace default"):
        check_key(other, OWNER)
    with pytest.raises(
        OutsideNamespaceError, match=r"Namespace default \(cluster-scoped\) is outside of the namespace"
    ):
        check_key(cluster_wide, OWNER)


async def test_an_unknown_kind_is_not_checked(autojump_clock: MockClock) -> None:
    odd: JsonObject = {"apiVersion": "none.example/v1", "kind": "None", "metadata": {"name": "a", "namespace": "far"}}
    async with cluster() as (client, _transport):
        await check_scope(client, OWNER, [odd])
        assert await outside_of(client, OWNER, [odd, *objects_of(NAMESPACE + config_map("a"))]) == [False, True, False]


async def test_the_number_of_named_objects_is_limited(autojump_clock: MockClock) -> None:
    many = objects_of("".join(config_map(f"c{number}", "namespace: far") for number in range(MAX_NAMED + 3)))
    async with cluster() as (client, _transport):
        with pytest.raises(OutsideNamespaceError, match=r"far/c4 and 3 more are outside"):
            await check_scope(client, OWNER, many)


async def test_a_confined_release_is_refused_before_its_first_write(autojump_clock: MockClock) -> None:
    async with confined() as (client, engine, free):
        with pytest.raises(
            OutsideNamespaceError, match=r"ConfigMap kube-system/far, Namespace made \(cluster-scoped\) are outside"
        ):
            await engine.upgrade(request(config_map("a"), FAR, NAMESPACE))
        assert await engine.history("web", "default") == []
        with pytest.raises(NotFoundError):
            await client.get(ObjectKey(MAPS, "default", "a"))
        for early in (engine.apply_early, engine.ensure_crds):
            with pytest.raises(OutsideNamespaceError):
                await early("web", "default", objects_of(NAMESPACE))
        free.add(OWNER)
        assert (await engine.upgrade(request(config_map("a"), FAR, NAMESPACE))).outcome is Outcome.INSTALLED


async def test_a_release_confined_again_is_refused_and_its_outside_objects_are_not_corrected(
    autojump_clock: MockClock,
) -> None:
    inputs, far = request(config_map("a", v="1"), FAR), ObjectKey(MAPS, "kube-system", "far")
    async with confined() as (client, engine, free):
        free.add(OWNER)
        await engine.upgrade(inputs)
        assert engine.unchanged(inputs) is not None
        free.clear()
        assert engine.unchanged(inputs) is None
        with pytest.raises(OutsideNamespaceError):
            await engine.upgrade(inputs)
        engine.prune()
        for key in (far, ObjectKey(MAPS, "default", "a")):
            await change(client, key)
        # The object inside the namespace is corrected, so the monitor has run.
        await trio.sleep(60)
        assert (await client.get(ObjectKey(MAPS, "default", "a")))["data"] == {"v": "1"}
        assert (await client.get(far))["data"] == {"v": "changed"}
        await trio.sleep(3600)
        assert (await client.get(far))["data"] == {"v": "changed"}
        # The next upgrade deletes the release's object outside the namespace.
        await engine.upgrade(replace(request(config_map("a", v="2"))))
        with pytest.raises(NotFoundError):
            await client.get(far)


async def test_recorded_objects_outside_are_not_watched_after_a_restart(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    far = ObjectKey(MAPS, "kube-system", "far")
    async with cluster() as (client, _transport):
        async with open_engine(client) as engine:
            await engine.upgrade(request(config_map("a", v="1"), FAR))
        async with open_engine(client, EngineOptions(confined=OWNER.__eq__)) as engine:
            await engine.restore("web", "default")
            assert "names objects outside of the namespace default, to which an Application is confined: ConfigMap" in (
                caplog.text
            )
            engine.prune()
            for key in (far, ObjectKey(MAPS, "default", "a")):
                await change(client, key)
            await trio.sleep(60)
            assert (await client.get(ObjectKey(MAPS, "default", "a")))["data"] == {"v": "1"}
            assert engine.drifts(OWNER) == ()
            assert (await client.get(far))["data"] == {"v": "changed"}
            await engine.upgrade(request(config_map("a", v="2")))
            with pytest.raises(NotFoundError):
                await client.get(far)


async def test_an_uninstall_deletes_its_own_objects_outside_of_the_namespace(autojump_clock: MockClock) -> None:
    async with confined() as (client, engine, free):
        free.add(OWNER)
        await engine.upgrade(request(config_map("a"), FAR))
        free.clear()
        done = await engine.uninstall("web", "default")
        assert {str(key) for key in done.deleted} == {"ConfigMap default/a", "ConfigMap kube-system/far"}
        with pytest.raises(NotFoundError):
            await client.get(ObjectKey(MAPS, "kube-system", "far"))


async def test_a_hook_of_a_kind_served_only_later_is_refused_when_it_is_written(autojump_clock: MockClock) -> None:
    """All objects of a request are checked before the first write. Kinds that are not served yet can only be checked later."""
    pod: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/x:1"}]}
    widget: JsonObject = {}
    hooks: list[JsonObject] = [
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {
                "name": "early",
                "annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": weight},
            },
            "spec": spec,
        }
        for api_version, kind, weight, spec in (
            ("v1", "Pod", "-1", pod),
            ("example.test/v1", "Widget", "1", widget),
        )
    ]
    async with confined() as (client, engine, _free):
        waits = trio.Event()

        async def serve() -> None:
            await waits.wait()
            await client.apply(widget_crd("Cluster"), field_manager="somebody")
            pod = ObjectKey(await client.resource_type("v1", "Pod"), "default", "early")
            await client.merge_patch(pod, {"status": {"phase": "Succeeded"}}, subresource="status")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(
                OutsideNamespaceError,
                match=r"Widget\.example\.test early \(cluster-scoped\) is outside of the namespace",
            ):
                await engine.upgrade(
                    replace(request(config_map("a")), hooks=tuple(hooks)), progress=lambda _laggards: waits.set()
                )
        widgets = await client.resource_type("example.test/v1", "Widget")
        assert (await client.list(widgets)).items == ()
