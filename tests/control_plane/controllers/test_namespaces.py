"""Namespaces in a cluster: the objects that every namespace has (ServiceAccount, CA certificate), and their removal."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import config_map, key, look, obj, open_cluster, settle, workload
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import find, find_list


async def test_every_namespace_has_its_standard_objects(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Namespace", "x", ""))
        await settle()
        for namespace in ("default", "kube-system", "x"):
            assert await look(client, "v1", "ServiceAccount", "default", namespace) is not None
            root_ca = await look(client, "v1", "ConfigMap", "kube-root-ca.crt", namespace)
            assert find(root_ca, "data") == {"ca.crt": "PEM"}


async def test_deleted_standard_objects_are_created_again(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        account = await key(client, "v1", "ServiceAccount", "default")
        before = await client.get(account)
        await client.delete(account)
        await settle()
        after = await client.get(account)
        assert find(before, "metadata", "uid") != find(after, "metadata", "uid")


async def test_a_deleted_namespace_is_emptied_and_removed(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Namespace", "x", ""))
        for name in ("a", "b"):
            await client.create(config_map(name, namespace="x"))
        deployment = workload("Deployment", "web")
        metadata = deployment["metadata"]
        assert isinstance(metadata, dict)
        metadata["namespace"] = "x"
        await client.create(deployment)
        await settle()
        await client.delete(await key(client, "v1", "Namespace", "x"))
        await settle()
        assert await look(client, "v1", "Namespace", "x") is None
        for resource in [
            await client.resource_type("v1", "ConfigMap"),
            await client.resource_type("apps/v1", "ReplicaSet"),
        ]:
            assert not (await client.list(resource, "x")).items


async def test_a_namespace_reports_remaining_finalizers_and_is_not_removed(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Namespace", "x", ""))
        held = await key(client, "v1", "ConfigMap", "held", "x")
        await client.create(config_map("held", namespace="x", finalizers=["example.com/hold"]))
        await client.delete(await key(client, "v1", "Namespace", "x"))
        await settle(15)
        namespace = await look(client, "v1", "Namespace", "x")
        said = {find(one, "type"): find(one, "status") for one in find_list(namespace, "status", "conditions")}
        assert said["NamespaceContentRemaining"] == said["NamespaceFinalizersRemaining"] == "True"
        await client.merge_patch(held, {"metadata": {"finalizers": None}})
        await settle()
        try:
            raise AssertionError(await client.get(await key(client, "v1", "Namespace", "x")))
        except NotFoundError as error:
            assert error.code == 404
