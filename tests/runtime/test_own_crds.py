"""The CRDs that ship: whole, consistent with the code that reads them, and established at a real control plane."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

import pytest

from tests.cluster.clusters import memory_cluster
from wharfinger.cluster.client import ClusterClient, ObjectList
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.json_value import JsonObject, find, find_list, find_str
from wharfinger.runtime import status as statuses
from wharfinger.runtime.own_crds import CRD, ensure_crds, own_crds
from wharfinger.runtime.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY


def by_kind() -> dict[str, JsonObject]:
    return {find_str(crd, "spec", "names", "kind"): crd for crd in own_crds()}


def test_they_serve_what_the_code_reads() -> None:
    for resource in (APPLICATION, MODULE, PACKAGE_REPOSITORY):
        crd = by_kind()[resource.kind]
        assert find_str(crd, "metadata", "name") == f"{resource.plural}.{resource.group}"
        assert find_str(crd, "spec", "scope") == ("Namespaced" if resource.namespaced else "Cluster")
        assert find_str(crd, "spec", "versions", 0, "name") == resource.version
    assert CRD.kind == find_str(own_crds()[0], "kind")


@pytest.mark.parametrize("kind", ["Application", "Module"])
def test_the_status_schema_has_every_field_that_is_written(kind: str) -> None:
    properties = find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    status = statuses.placed(statuses.fresh(1, now), "prod")
    status = statuses.released(status, "1.0.0", "sha256:aa", 1)
    status = statuses.tracking(status, ("ConfigMap prod/a",), ("Deployment.apps prod/web",), now)
    status = statuses.warned(status, ("spec.settings.old: is deprecated",), now)
    written = statuses.external(status)
    declared = cast("JsonObject", find(properties, "properties"))
    assert set(written) == set(declared)
    condition = cast("JsonObject", find(declared, "conditions", "items", "properties"))
    for entry in find_list(written, "conditions"):
        assert isinstance(entry, dict)
        assert set(entry) == set(condition)
    for part in ("summary", "currentVersion", "release", "progress"):
        assert set(cast("JsonObject", written[part])) == set(cast("JsonObject", find(declared, part, "properties")))


async def test_they_are_established_and_putting_them_there_again_changes_nothing() -> None:
    async with memory_cluster() as client:
        await ensure_crds(client, "wharfinger")
        before = (await client.list(CRD)).items
        assert {find_str(crd, "spec", "names", "kind") for crd in before} == set(by_kind())
        await ensure_crds(client, "wharfinger")
        assert (await client.list(CRD)).items == before
        for resource in (APPLICATION, MODULE, PACKAGE_REPOSITORY):
            assert (await client.list(resource)).items == ()


@dataclass
class NamesTaken:
    """A ClusterClient of a cluster in which another CRD has the names of ours."""

    client: ClusterClient

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        listed = await self.client.list(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        condition: JsonObject = {"type": "NamesAccepted", "status": "False", "message": "already in use"}
        taken: JsonObject = {"conditions": [condition]}
        return replace(listed, items=tuple({**item, "status": taken} for item in listed.items))


async def test_names_that_somebody_else_has_are_said() -> None:
    async with memory_cluster() as client:
        with pytest.raises(ClusterError, match="already in use; another CRD may have its names"):
            await ensure_crds(cast("ClusterClient", NamesTaken(client)), "wharfinger")
