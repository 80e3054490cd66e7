"""Objects of a release that remain after its records were deleted. In most tests, the namespace was deleted as well."""

import logging
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import NAMESPACE, key, widget_crd
from tests.cluster.support.release_bench import Faulty, bench, cluster, open_engine
from tests.cluster.support.release_requests import config_map, objects_of, request
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.releases.request import ReleaseRequest, UninstallResult
from wharfinger.cluster.watch.object_waits import wait_gone
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

RBAC = "rbac.authorization.k8s.io"
ROLE = ResourceType(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
ADMIN = ObjectKey(ROLE, "", "web-admin")
ELSEWHERE = key("outside", "default")


def cluster_role(name: str, extra: str = "") -> str:
    return (
        f"---\napiVersion: {RBAC}/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\n"
        + "".join(f"  {line}\n" for line in extra.splitlines())
        + "rules:\n- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}\n"
    )


def crd_manifest() -> str:
    return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.test}\n"


def wanted() -> ReleaseRequest:
    """Return a release with objects inside and outside of its namespace, a cluster-scoped object, and a CRD."""
    manifest = config_map("inside") + config_map("outside", "namespace: default") + cluster_role("web-admin")
    asked = request(manifest)
    return replace(
        asked,
        namespace="shop",
        manifest=manifest + crd_manifest(),
        objects=(*asked.objects, widget_crd()),
    )


async def make_namespace(client: ClusterClient, name: str = "shop") -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def delete_namespace(client: ClusterClient, name: str = "shop") -> None:
    """Delete the namespace, and wait until it is deleted with everything in it."""
    uid = find_str(await client.get(ObjectKey(NAMESPACE, "", name)), "metadata", "uid")
    await client.delete(ObjectKey(NAMESPACE, "", name))
    with trio.fail_after(600):
        await wait_gone(client, {ObjectKey(NAMESPACE, "", name): uid})


async def is_there(client: ClusterClient, which: ObjectKey) -> bool:
    try:
        await client.get(which)
    except NotFoundError:
        return False
    return True


def told(result: UninstallResult) -> tuple[list[str], dict[str, str]]:
    return sorted(str(one) for one in result.deleted), {str(one): why for one, why in result.kept.items()}


async def gone_meanwhile(client: HttpClusterClient, asked: ReleaseRequest) -> None:
    """Apply a release, end the daemon, and then delete the release's namespace."""
    await make_namespace(client)
    async with open_engine(client) as engine:
        await engine.upgrade(asked)
    await delete_namespace(client)


async def test_objects_left_by_a_namespace_deleted_while_stopped_are_deleted(autojump_clock: MockClock) -> None:
    async with cluster(simulate=True) as (client, _):
        await gone_meanwhile(client, wanted())
        assert await is_there(client, ADMIN)
        async with open_engine(client) as engine:
            result = await engine.uninstall("web", "shop")
            assert told(result) == (
                ["ClusterRole.rbac.authorization.k8s.io web-admin", "ConfigMap default/outside"],
                {
                    "CustomResourceDefinition.apiextensions.k8s.io widgets.example.test": (
                        "CustomResourceDefinition objects are only deleted on request"
                    )
                },
            )
            assert not result.found
            assert not await is_there(client, ADMIN)
            assert not await is_there(client, ELSEWHERE)
            assert engine.statistics().table.rows == 0
            assert told(await engine.uninstall("web", "shop", delete_protected=True))[0] == [
                "CustomResourceDefinition.apiextensions.k8s.io widgets.example.test"
            ]
        async with open_engine(client) as engine:
            assert await engine.uninstall("web", "shop") == UninstallResult(found=False)


async def test_objects_left_are_deleted_if_the_records_went_before_the_uninstall(autojump_clock: MockClock) -> None:
    """Kubernetes deletes the objects of a namespace in any order, so records may disappear first while a daemon is running."""
    async with bench(simulate=True) as at:
        await make_namespace(at.client)
        await at.engine.upgrade(wanted())
        await delete_namespace(at.client)
        await trio.sleep(10)
        result = await at.engine.uninstall("web", "shop")
        assert told(result)[0] == ["ClusterRole.rbac.authorization.k8s.io web-admin", "ConfigMap default/outside"]


async def test_objects_are_deleted_if_another_process_deleted_the_records(autojump_clock: MockClock) -> None:
    """The namespace still exists, so the uninstall must also delete the objects in it, and wait until they are gone."""
    async with cluster(simulate=True) as (client, _):
        await make_namespace(client)
        async with open_engine(client) as engine:
            await engine.upgrade(wanted())
        secrets = await client.resource_type("v1", "Secret")
        for secret in (await client.list(secrets, "shop", label_selector="owner=helm")).items:
            await client.delete(ObjectKey(secrets, "shop", find_str(secret, "metadata", "name")))
        async with open_engine(client) as engine:
            result = await engine.uninstall("web", "shop")
        assert told(result)[0] == [
            "ClusterRole.rbac.authorization.k8s.io web-admin",
            "ConfigMap default/outside",
            "ConfigMap shop/inside",
        ]


async def test_an_uninstall_without_applied_objects_lists_nothing(autojump_clock: MockClock) -> None:
    async with cluster(simulate=True) as (client, transport), open_engine(client) as engine:
        lists: list[str] = []

        def listed(asked: httpx.Request) -> None:
            if "labelSelector" in asked.url.params and "watch" not in asked.url.params:
                lists.append(asked.url.path)

        await trio.sleep(1)
        transport.fault = listed
        result = await engine.uninstall("web", "default", applied=False)
        assert result == UninstallResult(found=False)
        assert lists == []


async def test_objects_that_belong_to_others_by_now_stay(autojump_clock: MockClock) -> None:
    """Four objects stay: two belong to other releases, one was copied by another tool, and one has the resource policy "keep"."""
    kept = cluster_role("web-kept", "annotations: {helm.sh/resource-policy: keep}")
    manifest = cluster_role("web-admin") + cluster_role("web-given") + kept
    async with cluster(simulate=True) as (client, _):
        await gone_meanwhile(client, replace(request(manifest), namespace="shop"))
        given = ObjectKey(ROLE, "", "web-given")
        to_other: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "default"}
        await client.merge_patch(given, {"metadata": {"annotations": to_other}})
        (copied,) = objects_of(cluster_role("web-copy"))
        await client.create(owned(copied, Owner("web", "shop")))
        (namesake,) = objects_of(cluster_role("web-of-another-namespace"))
        await client.apply(owned(namesake, Owner("web", "default")), field_manager="wharfinger")
        async with open_engine(client) as engine:
            result = await engine.uninstall("web", "shop")
        assert told(result) == (
            ["ClusterRole.rbac.authorization.k8s.io web-admin"],
            {"ClusterRole.rbac.authorization.k8s.io web-kept": "helm.sh/resource-policy: keep"},
        )
        for name in ("web-given", "web-copy", "web-of-another-namespace", "web-kept"):
            assert await is_there(client, ObjectKey(ROLE, "", name))


async def test_orphaned_objects_stay_without_the_release_label(autojump_clock: MockClock) -> None:
    async with cluster(simulate=True) as (client, _):
        await gone_meanwhile(client, replace(request(cluster_role("web-admin")), namespace="shop"))
        async with open_engine(client) as engine:
            result = await engine.uninstall("web", "shop", orphan=True)
        assert told(result) == ([], {"ClusterRole.rbac.authorization.k8s.io web-admin": "kept, as requested"})
        assert find_str(await client.get(ADMIN), "metadata", "labels", "wharfinger.dev/release") == ""


async def test_a_new_release_of_that_name_adopts_or_prunes_objects_left(autojump_clock: MockClock) -> None:
    """The namespace and the release are created again under the same names before the old objects are removed."""
    first = replace(request(cluster_role("web-admin") + cluster_role("web-old")), namespace="shop")
    async with cluster(simulate=True) as (client, _):
        await gone_meanwhile(client, first)
        uid = find_str(await client.get(ADMIN), "metadata", "uid")
        await make_namespace(client)
        async with open_engine(client) as engine:
            await engine.upgrade(replace(request(cluster_role("web-admin")), namespace="shop"))
            assert find_str(await client.get(ADMIN), "metadata", "uid") == uid
            engine.prune()
            await trio.sleep(60)
            assert not await is_there(client, ObjectKey(ROLE, "", "web-old"))
            assert told(await engine.uninstall("web", "shop"))[0] == ["ClusterRole.rbac.authorization.k8s.io web-admin"]


def refusing(transport: Faulty, code: int, kind: str) -> None:
    transport.fault = lambda asked: (
        httpx.Response(code, content=b"{}")
        if asked.method == "GET" and asked.url.path.endswith(kind) and "watch" not in asked.url.params
        else None
    )


async def test_an_uninstall_is_retried_if_a_kind_cannot_be_listed(autojump_clock: MockClock) -> None:
    """Objects of the kind that cannot be listed may remain, so the uninstall must not succeed before this kind was listed."""
    async with cluster(simulate=True) as (client, transport):
        await gone_meanwhile(client, wanted())
        async with open_engine(client) as engine:
            refusing(transport, 500, "/clusterroles")
            with pytest.raises(ApiError, match="ClusterRole"):
                await engine.uninstall("web", "shop")
            refusing(transport, 500, "/nothing")
            await engine.uninstall("web", "shop")
        assert not await is_there(client, ADMIN)


async def test_a_kind_forbidden_to_list_is_reported_and_skipped(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A daemon that may not list a kind is assumed to have applied no objects of that kind."""
    async with cluster(simulate=True) as (client, transport):
        await gone_meanwhile(client, wanted())
        async with open_engine(client) as engine:
            refusing(transport, 403, "/storageclasses")
            with caplog.at_level(logging.WARNING):
                result = await engine.uninstall("web", "shop")
        assert len(result.deleted) == 2
        assert "StorageClass.storage.k8s.io" in caplog.text
