"""The bundled CRDs: they are complete, agree with the code that reads them, and are established on a real control plane."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

import pytest

from tests.cluster.support.clusters import memory_cluster
from tests.runtime.support.objects import application, module
from wharfinger.cluster.api.client import ClusterClient, ObjectList
from wharfinger.cluster.api.errors import ClusterError, InvalidError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.kube.resource import ResourceType
from wharfinger.packages.definition.depends_on import MAX_DEPENDS_ON
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.pools.pods.claim_machine import ClaimStatus, status_patch
from wharfinger.pools.pods.pool_status import PoolNumbers, pool_status
from wharfinger.pools.pods.resources import WORKER_CLAIM, WORKER_POOL
from wharfinger.runtime.resources.custom_resources import CRD, OF_POOLS, check_crds, ensure_crds, own_crds
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY, read_module
from wharfinger.runtime.shards.ownership import SHARD_FIELD
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_note import VersionNote


def by_kind() -> dict[str, JsonObject]:
    return {find_str(crd, "spec", "names", "kind"): crd for crd in own_crds()}


def test_crds_have_the_names_and_versions_of_the_code() -> None:
    for resource in (APPLICATION, MODULE, PACKAGE_REPOSITORY, WORKER_POOL, WORKER_CLAIM):
        crd = by_kind()[resource.kind]
        assert find_str(crd, "metadata", "name") == f"{resource.plural}.{resource.group}"
        assert find_str(crd, "spec", "scope") == ("Namespaced" if resource.namespaced else "Cluster")
        assert find_str(crd, "spec", "versions", 0, "name") == resource.version
    assert CRD.kind == find_str(own_crds()[0], "kind")


def undescribed(schema: JsonObject, path: str) -> list[str]:
    """Return the fields that no sentence describes. The API server itself describes the fields that all objects have."""
    found: list[str] = []
    for name, each in find_object(schema, "properties").items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            inner = as_object(each, name)
            described = find_str(inner, "description")
            if not described.endswith(".") or not described[0].isupper():
                found.append(f"{path}.{name}")
            found += undescribed(inner, f"{path}.{name}")
            found += undescribed(find_object(inner, "items"), f"{path}.{name}[]")
    return found


@pytest.mark.parametrize(
    "kind", ["Application", "Module", "PackageRepository", "PackageIndex", "WorkerPool", "WorkerClaim"]
)
def test_every_field_is_described(kind: str) -> None:
    schema = as_object(find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema"), "schema")
    assert find_str(schema, "description")
    assert undescribed(schema, "") == []


def test_short_names_do_not_conflict_with_other_projects() -> None:
    """Argo CD's applications have the short names `app` and `apps`, so ours must differ."""
    short = {kind: find_list(crd, "spec", "names", "shortNames") for kind, crd in by_kind().items()}
    assert short == {
        "Application": ["wapp"],
        "Module": ["wmod"],
        "PackageRepository": ["pkgrepo"],
        "PackageIndex": ["pkgidx"],
        "WorkerPool": ["wpool"],
        "WorkerClaim": ["wclaim"],
    }


@pytest.mark.parametrize("kind", ["Application", "Module"])
def test_the_status_schema_has_every_field_that_is_written(kind: str) -> None:
    properties = find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    status = statuses.placed(statuses.fresh(1, now), "prod")
    status = statuses.released(status, "1.0.0", "sha256:aa", 1)
    status = statuses.tracking(status, ("ConfigMap prod/a",), ("Deployment.apps prod/web",), now)
    status = statuses.warned(status, ("spec.settings.old: is deprecated",), now)
    status = statuses.reachable(status, (("https://web.example", "for customers"),), now)
    status = statuses.chosen(status, VersionNote("range >=1", "1.0.0", "AwaitsApproval", "1.1.0 waits", "1.1.0"), now)
    status = statuses.rolled_back(status, RollbackNote(1, "1.0.0", "2.0.0", "UpgradeFailed", "why"), now)
    written = statuses.external(status)
    declared = cast("JsonObject", find(properties, "properties"))
    assert set(written) == set(declared) - {SHARD_FIELD}  # the shard is written separately, by compare-and-set
    condition = cast("JsonObject", find(declared, "conditions", "items", "properties"))
    for entry in find_list(written, "conditions"):
        assert isinstance(entry, dict)
        assert set(entry) == set(condition)
    for part in ("summary", "currentVersion", "release", "progress", "update"):
        assert set(cast("JsonObject", written[part])) == set(cast("JsonObject", find(declared, part, "properties")))


def test_the_status_schemas_of_pools_and_claims_have_every_field_that_is_written() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    numbers = PoolNumbers(desired=1, ready=1, starting=0, claimed=0, pods=1, waiting=0)
    claim = status_patch(ClaimStatus("Bound", "PodClaimed", "", "a", "b"), "uid", "1", now)
    written = {"WorkerPool": pool_status(numbers, 1, {}, now), "WorkerClaim": find_object(claim, "status")}
    for kind, status in written.items():
        declared = find_object(
            find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status"),
            "properties",
        )
        assert set(status) == set(declared)
    condition = find_object(
        find(by_kind()["WorkerPool"], "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status"),
        *("properties", "conditions", "items", "properties"),
    )
    (entry,) = find_list(written["WorkerPool"], "conditions")
    assert isinstance(entry, dict)
    assert set(entry) == set(condition)


@pytest.mark.slow
async def test_ensuring_crds_establishes_them_once() -> None:
    async with memory_cluster() as client:
        await ensure_crds(client, "wharfinger")
        before = (await client.list(CRD)).items
        assert {find_str(crd, "spec", "names", "kind") for crd in before} == set(by_kind()) - OF_POOLS
        await ensure_crds(client, "wharfinger")
        assert (await client.list(CRD)).items == before
        for resource in (APPLICATION, MODULE, PACKAGE_REPOSITORY):
            assert (await client.list(resource)).items == ()
        await ensure_crds(client, "wharfinger", worker_pools=True)
        assert {find_str(crd, "spec", "names", "kind") for crd in (await client.list(CRD)).items} == set(by_kind())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("WorkerPool", {"size": 2, "min": 1, "max": 3}, []),
        ("WorkerPool", {"size": 2, "max": 3}, []),
        ("WorkerPool", {"size": 2, "min": 3, "max": 3}, ["min must not be more than size"]),
        ("WorkerPool", {"size": 4, "max": 3}, ["size must not be more than max"]),
    ],
)
async def test_the_sizes_of_pools_are_validated(kind: str, spec: JsonObject, said: list[str]) -> None:
    document = as_object(find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema"), kind)
    schema = compile_schema(document, what=kind)
    assert schema.rules is not None
    obj: JsonObject = {"spec": {**spec, "template": {"spec": {"containers": [{}]}}}}
    async with open_cel_pool(None) as rules:
        problems = await rules.evaluate(schema.rules, obj)
    assert [problem.message for problem in problems] == said


def depending(kind: str, *entries: JsonValue) -> JsonObject:
    obj = module("web") if kind == "Module" else application("default", "web")
    find_object(obj, "spec")["dependsOn"] = list(entries)
    for key in ("uid", "generation"):
        find_object(obj, "metadata").pop(key, None)
    return obj


@pytest.mark.parametrize("kind", ["Application", "Module"])
async def test_dependencies_are_validated_by_the_api_server(kind: str) -> None:
    """The schema covers most rules. The daemon refuses all other mistakes when it reads the resource."""
    ingress: JsonObject = {"kind": "Module", "name": "ingress"}
    wrong: list[tuple[tuple[JsonValue, ...], str]] = [
        (({"kind": "Pod", "name": "a"},), "spec.dependsOn[0].kind"),
        (({"name": "a"},), "spec.dependsOn[0].kind"),
        (({"kind": "Module"},), "spec.dependsOn[0].name"),
        (({"kind": "Module", "name": "A"},), "spec.dependsOn[0].name"),
        (({"kind": "Application", "name": "a", "namespace": "B"},), "spec.dependsOn[0].namespace"),
        (({"kind": "Module", "name": "a", "version": 1},), "spec.dependsOn[0].version"),
        (tuple({"kind": "Module", "name": f"m{number}"} for number in range(MAX_DEPENDS_ON + 1)), "spec.dependsOn"),
        (("a",), "spec.dependsOn[0]"),
    ]
    async with memory_cluster() as client:
        await ensure_crds(client, "wharfinger")
        for entries, field in wrong:
            with pytest.raises(InvalidError) as refused:
                await client.create(depending(kind, *entries))
            assert field in str(refused.value), entries
        named: JsonObject = {"kind": "Application", "name": "db", "namespace": "prod", "version": ">=1.2, <2"}
        made = await client.create(depending(kind, ingress, named))
        assert find_list(made, "spec", "dependsOn") == [ingress, named]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "entry", "said"),
    [
        ("Application", {"kind": "Application", "name": "db"}, []),
        ("Application", {"kind": "Application", "name": "db", "namespace": "prod"}, []),
        ("Application", {"kind": "Module", "name": "a"}, []),
        (
            "Application",
            {"kind": "Module", "name": "a", "namespace": "b"},
            ["a Module has no namespace; leave it out"],
        ),
        ("Module", {"kind": "Application", "name": "db", "namespace": "prod"}, []),
        ("Module", {"kind": "Module", "name": "a"}, []),
        ("Module", {"kind": "Module", "name": "a", "namespace": "b"}, ["a Module has no namespace; leave it out"]),
        (
            "Module",
            {"kind": "Application", "name": "db"},
            ["set the namespace of the required Application, because a Module has no namespace of its own"],
        ),
    ],
)
async def test_namespaces_of_dependencies_are_validated_by_cel_rules(
    kind: str, entry: JsonObject, said: list[str]
) -> None:
    """Check the messages of the CEL rules in the CRDs. Worker processes evaluate the rules here, without an API server."""
    document = as_object(find(by_kind()[kind], "spec", "versions", 0, "schema", "openAPIV3Schema"), kind)
    schema = compile_schema(document, what=kind)
    assert schema.rules is not None
    async with open_cel_pool(None) as rules:
        problems = await rules.evaluate(schema.rules, depending(kind, entry))
    assert [problem.message for problem in problems] == said


async def test_spec_enabled_of_a_module_has_no_default() -> None:
    async with memory_cluster() as client:
        await ensure_crds(client, "wharfinger")
        made = await client.create(module("silent"))
        assert find(made, "spec", "enabled") is None
        assert read_module(made, enabled_by_default=None).enabled is None


@dataclass
class NamesTaken:
    """A client of a cluster in which another CRD already uses the same names."""

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


async def test_names_used_by_another_crd_are_reported() -> None:
    async with memory_cluster() as client:
        with pytest.raises(ClusterError, match="already in use; check whether another CRD uses the same names"):
            await ensure_crds(cast("ClusterClient", NamesTaken(client)), "wharfinger")


async def test_missing_or_older_crds_are_refused_by_a_shard() -> None:
    async with memory_cluster() as client:
        with pytest.raises(ClusterError, match="not found"):
            await check_crds(client)
        await ensure_crds(client, "t")
        await check_crds(client)
        crd = by_kind()[APPLICATION.kind]
        del find_object(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "status", "properties")[
            "shard"
        ]
        await client.apply(crd, field_manager="t", force=True)
        with pytest.raises(ClusterError, match=r"applications.wharfinger.dev is older than this daemon.*shard"):
            await check_crds(client)
