"""Objects that the hooks of an Application may not change."""

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.patching import PATCHES, applied, data_of, exists, failed, meddled_cluster, patch_of
from wharfinger.formats.json.value import JsonObject

FOREIGN = [
    {"operation": "Create", "object": config_map("a", namespace="kube-system")},
    {"operation": "CreateIfNotExists", "object": config_map("a", namespace="kube-system")},
    {"operation": "CreateOrUpdate", "object": config_map("a", namespace="kube-system")},
    *(patch_of(name, namespace="kube-system") for name in ("Delete", "DeleteInBackground", "DeleteNonCascading")),
    *(patch_of(name, namespace="kube-system", **more) for name, more in PATCHES.items()),
]
UNPLACED = [
    {"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}},
    {"operation": "Create", "object": widget_crd()},
    {"operation": "Delete", "kind": "Namespace", "name": "kube-public"},
    {"operation": "Delete", "kind": "ns", "name": "default", "namespace": "default"},
    {
        "operation": "MergePatch",
        "kind": "namespaces",
        "name": "default",
        "mergePatch": {"metadata": {"labels": {"a": "b"}}},
    },
]


@pytest.mark.parametrize("document", FOREIGN)
async def test_application_hooks_may_not_change_other_namespaces(document: JsonObject) -> None:
    async with meddled_cluster() as (ours, other, way):
        await other.create(config_map("a", namespace="kube-system", v="1"))
        failure = await failed(ours, document, "default")
        assert failure.message.endswith(
            "namespace kube-system is not the Application's own: an Application's hooks "
            "may only change objects of its own namespace (default)"
        )
        assert not failure.transient
        assert way.methods == []


@pytest.mark.parametrize("document", UNPLACED)
async def test_application_hooks_may_not_change_cluster_scoped_objects(document: JsonObject) -> None:
    async with meddled_cluster() as (ours, _, way):
        failure = await failed(ours, document, "default")
        assert "is cluster-scoped: an Application's hooks may only change objects of its own" in failure.message
        assert not failure.transient
        assert way.methods == []


async def test_missing_namespace_defaults_to_the_applications_own(autojump_clock: MockClock) -> None:
    async with memory_cluster(simulate=True) as client:
        obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        documents: list[JsonObject] = [
            {"operation": "Create", "object": obj},
            {"operation": "CreateOrUpdate", "object": config_map("a", namespace="kube-public", v="1")},
            {"operation": "MergePatch", "kind": "cm", "name": "a", "mergePatch": {"data": {"w": "2"}}},
        ]
        assert await applied(client, *documents, namespace="kube-public") == ()
        assert await data_of(client, namespace="kube-public") == {"v": "1", "w": "2"}
        assert await applied(client, {"operation": "Delete", "kind": "cm", "name": "a"}, namespace="kube-public") == ()
        assert not await exists(client, "a", "kube-public")


async def test_an_object_with_invalid_metadata_is_a_permanent_failure() -> None:
    async with memory_cluster() as client:
        obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "a"}
        failure = await failed(client, {"operation": "Create", "object": obj}, "default")
        assert (failure.message, failure.transient) == (
            "Create object v1/ConfigMap//: metadata: expected an object, found a string",
            False,
        )
