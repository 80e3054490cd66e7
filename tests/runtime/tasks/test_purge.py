"""Objects that the workloads of a package have created. They are deleted with the package if the package declares their kinds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.support.client_contract import widget_crd
from tests.runtime.support.world import World, one_error, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import hooked
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.cluster.api.errors import ClusterError, api_error
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object, find_str
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET

SCHEMA = (
    "type: object\nproperties:\n  seen: {type: integer, default: 0}\n"
    "  orphanResources: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}\n"
)


def left(kind: str, name: str, **metadata: JsonValue) -> JsonObject:
    """Return an object with the label that the workloads of prod/app give to the objects that they create."""
    labels: JsonObject = {"app.kubernetes.io/instance": "app"}
    body: JsonObject = {"name": name, "namespace": "prod", "labels": labels, **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": body}


async def installed(world: World, tmp_path: Path, orphans: JsonValue) -> None:
    await world.repository()
    folder = hooked(
        tmp_path / "hooked",
        {},
        files={"openapi/values.yaml": SCHEMA, "values.yaml": write_yaml({"orphanResources": orphans})},
    )
    await world.push_folder(folder, "hooked", "1.0.0")
    await world.create("prod", "app", package="hooked")
    await world.until_state("prod", "app", "Ready")


async def test_only_objects_of_declared_kinds_are_deleted(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await installed(
            world, tmp_path, [{"kind": "ConfigMap", "version": "v1"}, {"kind": "Namespace", "version": "v1"}]
        )
        kept: JsonObject = {"helm.sh/resource-policy": "keep"}
        foreign: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "prod"}
        await world.client.create(left("ConfigMap", "orphan"))
        await world.client.create(left("ConfigMap", "kept", annotations=kept))
        await world.client.create(left("ConfigMap", "foreign", annotations=foreign))
        await world.client.create(left("ConfigMap", "somebody-elses", labels={"app.kubernetes.io/instance": "b"}))
        await world.client.create(left("Secret", "undeclared"))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        names = {str(item.get("metadata")) for item in (await world.client.list(CONFIG_MAP, "prod")).items}
        found = {
            name for name in ("orphan", "kept", "foreign", "somebody-elses") if any(f"'{name}'" in one for one in names)
        }
        assert found == {"kept", "foreign", "somebody-elses"}
        secrets = {str(item.get("metadata")) for item in (await world.client.list(SECRET, "prod")).items}
        assert any("'undeclared'" in one for one in secrets)


async def test_an_invalid_declaration_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    orphans: JsonValue = [{"kind": "ConfigMap"}, "x", {"kind": 1, "version": "v1"}, {"kind": "Ghost", "version": "v9"}]
    async with open_world(tmp_path) as world:
        await installed(world, tmp_path, orphans)
        await world.client.create(left("ConfigMap", "stays"))
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert any("'stays'" in str(item) for item in (await world.client.list(CONFIG_MAP, "prod")).items)
    assert "orphanResources[0]: kind and version are required" in caplog.text


# -- kinds, and refusals of the server


class Refusing(LimitedClient):
    """A client that records deletions. It refuses the deletion of an object once for each error in ``refused``."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.refused: dict[str, list[ClusterError]] = {}
        self.deleted: list[tuple[str, bool, Propagation]] = []

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        self.deleted.append((key.name, bool(uid), propagation))
        if errors := self.refused.get(key.name):
            raise errors.pop()
        return await super().delete(key, uid=uid, propagation=propagation)

    def times(self, name: str) -> int:
        """Return how often the deletion of an object was requested."""
        return sum(one == name for one, _, _ in self.deleted)


@asynccontextmanager
async def refusing_world(folder: Path) -> AsyncIterator[tuple[World, Refusing]]:
    with one_error():
        async with open_ground(folder) as ground:
            client = Refusing(ground.client)
            async with replace(ground, engine_client=client).open_world() as world:
                yield world, client


@pytest.mark.slow
async def test_a_refused_deletion_is_retried_and_delays_no_other(tmp_path: Path) -> None:
    async with refusing_world(tmp_path) as (world, client):
        await installed(world, tmp_path, [{"kind": kind, "version": "v1"} for kind in ("ConfigMap", "Secret")])
        finalizers: JsonValue = ["example.test/a"]
        for one in (left("ConfigMap", "refused"), left("ConfigMap", "second"), left("Secret", "third")):
            await world.client.create(one)
        ending = await world.client.create(left("ConfigMap", "ending", finalizers=finalizers))
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "ending"))
        client.refused["refused"] = [api_error(500, "InternalError", "etcdserver: request timed out")]
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        wanted = [entry for entry in client.deleted if entry[0] in {"refused", "second", "third", "ending"}]
        assert [name for name, _, _ in wanted] == ["refused", "second", "third", "refused"]
        assert {entry[1:] for entry in wanted} == {(True, Propagation.BACKGROUND)}
        stays = await world.client.get(ObjectKey(CONFIG_MAP, "prod", "ending"))
        assert find_str(stays, "metadata", "uid") == find_str(ending, "metadata", "uid")


async def test_an_object_deleted_by_another_client_is_no_error(tmp_path: Path) -> None:
    """The API server answers that the object is missing, or that another object has its name. Neither deletion is retried."""
    async with refusing_world(tmp_path) as (world, client):
        await installed(world, tmp_path, [{"kind": "ConfigMap", "version": "v1"}])
        for name in ("another", "gone"):
            await world.client.create(left("ConfigMap", name))
        client.refused["another"] = [api_error(409, "Conflict", "the UID is another one")]
        client.refused["gone"] = [api_error(404, "NotFound", "there is none")]
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert (client.times("another"), client.times("gone")) == (1, 1)
        assert any("'another'" in str(item) for item in (await world.client.list(CONFIG_MAP, "prod")).items)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("version", "gone"), [("v1", {"one", "two"}), ("one.test/v1", {"one"}), ("v2", set()), ("none.test/v1", set())]
)
async def test_a_version_without_a_group_matches_every_group(version: str, gone: set[str], tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        kinds = [ResourceType(f"{group}.test", "v1", "Widget", "widgets", namespaced=True) for group in ("one", "two")]
        for resource in kinds:
            definition = widget_crd()
            find_object(definition, "metadata")["name"] = f"widgets.{resource.group}"
            find_object(definition, "spec")["group"] = resource.group
            await world.client.create(definition)
        await installed(world, tmp_path, [{"kind": "Widget", "version": version}])
        for resource in kinds:
            name = resource.group.removesuffix(".test")
            await world.client.create({**left("Widget", name), "apiVersion": resource.api_version})
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        listed = [item for resource in kinds for item in (await world.client.list(resource, "prod")).items]
        assert {find_str(item, "metadata", "name") for item in listed} == {"one", "two"} - gone
