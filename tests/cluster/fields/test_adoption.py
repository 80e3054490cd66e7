"""Adoption of managedFields entries of other tools, so that fields removed from the chart are removed from the object."""

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError
from wharfinger.cluster.fields.adoption import adoption_patch
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str


def entry(
    manager: str, fields: JsonValue, operation: str = "Update", api_version: str = "v1", subresource: str = ""
) -> JsonObject:
    """Return one entry of managedFields."""
    made: JsonObject = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**made, "subresource": subresource} if subresource else made


def obj(*entries: JsonObject) -> JsonObject:
    """Return an object with these managedFields entries."""
    return {"metadata": {"name": "a", "resourceVersion": "7", "managedFields": [*entries]}}


def taken(*entries: JsonObject) -> list[tuple[str, str, JsonValue]] | None:
    """Return the managedFields entries after the adoption, or None if nothing is adopted."""
    patch = adoption_patch(obj(*entries), "wharfinger")
    if not patch:
        return None
    assert patch[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
    return [
        (find_str(one, "manager"), find_str(one, "operation"), find(one, "fieldsV1"))
        for one in find_list(patch[0], "value")
    ]


DATA_V: JsonObject = {"f:data": {"f:v": {}}}
DATA_W: JsonObject = {"f:data": {"f:w": {}}}
BOTH: JsonObject = {"f:data": {"f:v": {}, "f:w": {}}}
OWN = ("wharfinger", "Apply")


def test_fields_written_by_helm_become_ours() -> None:
    for helm in ("helm", "helm3", "helm4"):
        assert taken(entry(helm, DATA_V)) == [(*OWN, DATA_V)]
    assert taken(entry("helm", DATA_V, "Apply")) == [(*OWN, DATA_V)]
    assert taken(entry("helm", DATA_V), entry("wharfinger", DATA_W, "Apply")) == [(*OWN, BOTH)]
    assert taken(entry("helm", DATA_V), entry("helm3", DATA_W)) == [(*OWN, BOTH)]


def test_fields_of_other_managers_are_unchanged() -> None:
    assert taken() is None
    assert taken(entry("ann", DATA_V), entry("wharfinger", DATA_W, "Apply")) is None
    assert taken(entry("ann", DATA_V), entry("helm", DATA_W)) == [("ann", "Update", DATA_V), (*OWN, DATA_W)]
    assert taken(entry("helm", DATA_V, subresource="status")) is None
    assert taken(entry("wharfinger", DATA_V)) is None


def test_kubectl_applied_fields_are_adopted_once_and_are_user_edits_afterwards() -> None:
    last_applied: JsonObject = {
        "f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}, "f:x": {}}}
    }
    assert taken(entry("kubectl-client-side-apply", last_applied)) == [
        (*OWN, {"f:metadata": {"f:annotations": {".": {}, "f:x": {}}}})
    ]
    assert taken(entry("kubectl-client-side-apply", DATA_V), entry("wharfinger", DATA_W, "Apply")) is None
    assert taken(entry("before-first-apply", DATA_V)) == [(*OWN, DATA_V)]


def test_fields_of_another_api_version_are_not_merged() -> None:
    assert taken(entry("helm", DATA_V, api_version="v2"), entry("wharfinger", DATA_W, "Apply")) == [(*OWN, DATA_W)]


def test_unreadable_entries_are_unchanged() -> None:
    assert taken(entry("helm", {"data": {}})) is None
    assert taken(entry("helm", 5)) is None


async def write(client: ClusterClient, manager: str, **data: JsonValue) -> JsonObject:
    return await client.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data},
        field_manager=manager,
    )


async def test_adopted_fields_that_are_no_longer_applied_are_removed(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        live = await write(client, "helm", v="1", w="2")
        adopted = await client.json_patch(key("a"), adoption_patch(live, "wharfinger"))
        assert {find_str(one, "manager") for one in find_list(adopted, "metadata", "managedFields")} == {"wharfinger"}
        assert (await write(client, "wharfinger", v="1"))["data"] == {"v": "1"}


async def test_adoption_conflicts_if_the_object_changed_meanwhile(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        live = await write(client, "helm", v="1")
        await write(client, "ann", w="1")
        with pytest.raises(ConflictError):
            await client.json_patch(key("a"), adoption_patch(live, "wharfinger"))
