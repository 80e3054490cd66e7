"""Checks before the first write of a release. Refusals of upgrades are tested in test_engine."""

import httpx
import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.release_bench import cluster
from tests.cluster.support.release_requests import config_map as manifest
from tests.cluster.support.release_requests import objects_of
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ReleaseError, SilentKindError, UnknownKindError
from wharfinger.cluster.crds.preflight import ALLOW_UNSAFE
from wharfinger.cluster.objects.desired import desired_object, desired_table
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.lookup import look_up, rows_of
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner, owned
from wharfinger.cluster.releases.preflight import Survey, Surveyor, UnsafeDefinitionError, check_definition
from wharfinger.cluster.tables.transaction import write
from wharfinger.formats.json.value import JsonObject, encode_json, find, find_list

OWNER = Owner("web", "default")
POLICY = DriftPolicy(DriftMode.WARN)
WIDGET: JsonObject = {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "one"}}


def never(_: object) -> bool:
    return False


async def survey(client: ClusterClient, *objects: JsonObject, crds: tuple[JsonObject, ...] = ()) -> Survey:
    return await Surveyor(client, desired_table(), "wharfinger", never, never, never).survey(
        OWNER, objects, crds, POLICY
    )


def narrowed() -> JsonObject:
    """Return the CRD of the kind Widget with its scope changed to Cluster."""
    crd = widget_crd()
    spec = crd["spec"]
    assert isinstance(spec, dict)
    return {**crd, "spec": {**spec, "scope": "Cluster"}}


async def test_rows_are_in_install_order_with_their_live_objects(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(owned(config_map("a"), OWNER))
        (secret,) = objects_of("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
        seen = await survey(client, *objects_of(manifest("a") + manifest("b")), secret)
        assert [str(row.key) for row in seen.rows] == ["Secret default/s", "ConfigMap default/a", "ConfigMap default/b"]
        assert {str(identity): live is not None for identity, live in seen.lives.items()} == {
            "Secret default/s": False,
            "ConfigMap default/a": True,
            "ConfigMap default/b": False,
        }
        row = seen.rows[1]
        assert (row.owner, row.drift) == (OWNER, POLICY)
        assert find(row.object(), "metadata", "labels", "wharfinger.dev/release") == "web"


async def test_objects_of_kinds_still_to_be_defined_are_listed_separately(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        seen = await survey(client, WIDGET, crds=(widget_crd(),))
        assert (seen.rows, seen.coming, seen.definitions) == ((), (WIDGET,), {})
        assert (await survey(client, WIDGET, widget_crd())).coming == (WIDGET,)
        with pytest.raises(UnknownKindError):
            await survey(client, WIDGET)


async def test_an_object_has_one_owner_before_it_is_written(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        table = desired_table()
        other = Owner("db", "default")
        with write(table) as transaction:
            transaction.insert(table, desired_object(key("a"), other, config_map("a"), POLICY))
        with pytest.raises(
            ForeignObjectError, match="belongs to the release default/db, so it cannot also be part of default/web"
        ):
            await Surveyor(client, table, "wharfinger", never, never, never).survey(
                OWNER, [config_map("a")], (), POLICY
            )
        with pytest.raises(ReleaseError, match="ConfigMap default/a twice"):
            await survey(client, config_map("a"), config_map("a"))


@pytest.mark.parametrize("where", ["crds", "manifest"])
async def test_definitions_unsafe_for_stored_objects_are_refused(where: str, autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(owned(widget_crd(), OWNER))
        objects, crds = ((), (narrowed(),)) if where == "crds" else ((narrowed(),), ())
        with pytest.raises(UnsafeDefinitionError, match=r"widgets\.example\.test is not upgraded: .*scope") as caught:
            await survey(client, *objects, crds=crds)
        assert ALLOW_UNSAFE in str(caught.value)
        assert not caught.value.transient
        metadata: JsonObject = {"name": "widgets.example.test", "annotations": {ALLOW_UNSAFE: "True"}}
        allowed = narrowed() | {"metadata": metadata}
        seen = await survey(client, *(allowed for _ in objects), crds=tuple(allowed for _ in crds))
        assert len(seen.rows) + len(seen.definitions) == 1


def test_a_definition_with_many_problems_lists_a_few() -> None:
    live, wanted = widget_crd(), widget_crd()
    for crd, kind in ((live, "string"), (wanted, "integer")):
        (version,) = find_list(crd, "spec", "versions")
        assert isinstance(version, dict)
        properties: JsonObject = {f"p{number}": {"type": kind} for number in range(9)}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    with pytest.raises(UnsafeDefinitionError, match="; and 4 more; convert"):
        check_definition(live, wanted, "wharfinger")


def test_an_unreadable_definition_is_refused() -> None:
    with pytest.raises(ReleaseError, match="cannot be read"):
        check_definition(widget_crd(), widget_crd() | {"spec": {"versions": 5}}, "wharfinger")


async def test_rows_of_a_record_omit_unserved_kinds_and_duplicates(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        rows = await rows_of(client, OWNER, [WIDGET, config_map("b"), config_map("a"), config_map("b", v="2")], POLICY)
        assert [(row.key.name, find(row.object(), "data")) for row in rows] == [("b", {"v": "2"}), ("a", {})]


async def test_objects_of_an_unavailable_api_server_have_an_unknown_state(autojump_clock: MockClock) -> None:
    """While an API server does not answer, its objects must not count as deleted.

    Otherwise, they would be orphaned, or pruned when the server answers again.
    """
    group: JsonObject = {"metadata": {"name": "example.test"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    apis: JsonObject = {"kind": "APIGroupDiscoveryList", "items": [group]}
    async with cluster() as (client, transport):
        transport.fault = lambda asked: (
            httpx.Response(200, content=encode_json(apis), headers={"content-type": "application/json"})
            if asked.url.path == "/apis"
            else None
        )
        with pytest.raises(SilentKindError, match="does not answer"):
            await rows_of(client, OWNER, [WIDGET, config_map("a")], POLICY)


async def test_an_existing_object_is_looked_up(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        assert await look_up(client, key("a")) is None
        made = await client.create(config_map("a"))
        assert await look_up(client, key("a")) == made
