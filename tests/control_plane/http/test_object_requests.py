import json

import pytest
import trio
import yaml
from trio.testing import MockClock

from tests.control_plane.support.bench import (
    DEFINITIONS,
    SCALE,
    Reply,
    config_maps,
    made,
    new_plane,
    send,
    served,
    thing,
    watching,
)
from tests.control_plane.support.samples import definition
from wharfinger.control_plane.service import ControlPlane
from wharfinger.control_plane.verbs.patching import PatchType
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_str, to_json

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = PatchType.MERGE.value
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
BODY: JsonObject = {"metadata": {"name": "a"}, "data": {"x": "1"}}


def with_maps(*names: str) -> ControlPlane:
    plane = new_plane()
    maps = config_maps(plane.backend)
    for name in names:
        made(plane.backend, maps, thing(maps, name))
    return plane


def with_widgets(**version: JsonValue) -> ControlPlane:
    plane = new_plane()
    made(plane.backend, served(plane.backend, *DEFINITIONS), definition(**version), namespace="")
    return plane


def names(listed: Reply) -> list[str]:
    return [find_str(item, "metadata", "name") for item in find_list(listed.body, "items")]


async def test_an_object_is_created_updated_and_deleted() -> None:
    plane = new_plane()

    created = await send(plane, "POST", MAPS, BODY)
    read = await send(plane, "GET", f"{MAPS}/a")
    replaced = await send(plane, "PUT", f"{MAPS}/a", {**BODY, "data": {"x": "2"}})
    patched = await send(plane, "PATCH", f"{MAPS}/a", {"data": {"y": "3"}}, content_type=MERGE)
    deleted = await send(plane, "DELETE", f"{MAPS}/a")
    gone = await send(plane, "GET", f"{MAPS}/a")

    assert [reply.code for reply in (created, read, replaced, patched, deleted, gone)] == [201, 200, 200, 200, 200, 404]
    assert read.body == created.body
    assert patched.body["data"] == {"x": "2", "y": "3"}
    assert gone.body["reason"] == "NotFound"


async def test_an_apply_in_yaml_creates_an_object_with_201() -> None:
    plane = new_plane()
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n"
    path = f"{MAPS}/a?fieldManager=me"

    first = await send(plane, "PATCH", path, raw=text, content_type=PatchType.APPLY.value)
    second = await send(plane, "PATCH", path, raw=text, content_type=PatchType.APPLY.value)
    nameless = await send(plane, "PATCH", f"{MAPS}/a", raw=text, content_type=PatchType.APPLY.value)

    assert (first.code, second.code, nameless.code) == (201, 200, 422)
    assert first.body == second.body


async def test_the_user_agent_is_the_default_field_manager() -> None:
    plane = new_plane()
    created = await send(plane, "POST", MAPS, BODY, user_agent="kubectl/v1 (linux)")
    assert find(created.body, "metadata", "managedFields", 0, "manager") == "kubectl"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/nosuch"),
        ("GET", "/api/v9/pods"),
        ("GET", "/api/v1/namespaces/default/nodes"),
        ("GET", "/api/v1/configmaps/a"),
        ("GET", f"{MAPS}/a/status"),
        ("GET", f"{MAPS}/a/scale"),
        ("GET", f"{MAPS}/a/nosuch"),
    ],
)
async def test_unknown_resource_paths_are_not_found(method: str, path: str) -> None:
    reply = await send(with_maps("a"), method, path)
    assert (reply.code, find(reply.body, "message")) == (404, "the server could not find the requested resource")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
        ("PUT", MAPS),
        ("POST", f"{MAPS}/a"),
        ("HEAD", f"{MAPS}/a"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default/finalize"),
        ("DELETE", "/apis/apps/v1/namespaces/default/deployments/a/scale"),
    ],
)
async def test_disallowed_methods_are_refused(method: str, path: str) -> None:
    assert (await send(with_maps("a"), method, path, BODY)).code == 405


async def test_unsupported_media_types_are_refused() -> None:
    plane = with_maps("a")
    assert (await send(plane, "GET", f"{MAPS}/a", accept="text/html")).code == 406
    assert (await send(plane, "POST", MAPS, BODY, accept="text/html")).code == 406
    assert (await send(plane, "POST", MAPS, BODY, content_type="text/plain")).code == 415
    assert (await send(plane, "PATCH", f"{MAPS}/a", {}, content_type="application/json")).code == 415
    assert (await send(plane, "PATCH", f"{MAPS}/a", {}, content_type=PatchType.STRATEGIC.value)).code == 200
    assert (await send(with_widgets(), "PATCH", f"{WIDGETS}/a", {}, content_type=PatchType.STRATEGIC.value)).code == 415


async def test_requests_and_responses_may_be_yaml() -> None:
    text = yaml.safe_dump({"metadata": {"name": "a"}, "data": {"x": "text"}}).encode()
    reply = await send(new_plane(), "POST", MAPS, raw=text, content_type="application/yaml", accept="application/yaml")

    assert (reply.code, reply.content_type) == (201, "application/yaml")
    assert find(to_json(yaml.safe_load(find_str(reply.body, "text"))), "data", "x") == "text"


async def test_invalid_bodies_are_refused() -> None:
    plane = with_maps("a")

    created = await send(plane, "POST", MAPS, raw=b"{nonsense")
    assert created.code == 400
    assert find_str(created.body, "message").startswith(
        "the object provided is unrecognized (must be of type ConfigMap)"
    )
    assert (await send(plane, "PUT", f"{MAPS}/a", raw=b"")).code == 400
    assert (await send(plane, "DELETE", f"{MAPS}/a", raw=b"{nonsense")).code == 400
    assert (await send(plane, "POST", MAPS, raw=b" " * (3 * 1024 * 1024 + 1))).code == 413


async def test_invalid_options_are_refused() -> None:
    plane = with_maps("a")

    assert (await send(plane, "POST", f"{MAPS}?dryRun=Some", BODY)).code == 422
    assert (await send(plane, "GET", f"{MAPS}?limit=many")).code == 400
    assert (await send(plane, "GET", f"{MAPS}/a?resourceVersion=many")).code == 500
    assert (await send(plane, "DELETE", f"{MAPS}/a?propagationPolicy=Sideways")).code == 422
    forced = await send(plane, "PATCH", f"{MAPS}/a?force=true", {}, content_type=PatchType.MERGE.value)
    assert forced.code == 422


async def test_delete_options_are_read_from_body_or_query() -> None:
    plane = with_maps("a", "b")

    wrong = await send(plane, "DELETE", f"{MAPS}/a", {"preconditions": {"uid": "other"}})
    orphan = await send(plane, "DELETE", f"{MAPS}/b?propagationPolicy=Orphan")

    assert wrong.code == 409
    assert find(orphan.body, "metadata", "finalizers") == ["orphan"]


async def test_a_list_is_divided_into_pages() -> None:
    plane = with_maps("a", "b", "c")

    first = await send(plane, "GET", f"{MAPS}?limit=2")
    token = find_str(first.body, "metadata", "continue")
    second = await send(plane, "GET", f"{MAPS}?limit=2&continue={token}")

    assert (first.body["kind"], first.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert (names(first), find(first.body, "metadata", "remainingItemCount")) == (["a", "b"], 1)
    assert (names(second), find(second.body, "metadata", "continue")) == (["c"], None)
    assert find(first.body, "items", 0, "kind") is None


async def test_items_of_a_custom_list_have_a_kind() -> None:
    plane = with_widgets()
    await send(plane, "POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})

    listed = await send(plane, "GET", "/apis/example.com/v1/widgets")

    assert listed.body["kind"] == "WidgetList"
    assert find(listed.body, "items", 0, "kind") == "Widget"
    assert find(listed.body, "metadata", "continue") == ""


async def test_objects_are_served_as_tables_and_partial_metadata() -> None:
    plane = with_maps("a")

    table = await send(plane, "GET", MAPS, accept=TABLE)
    full = await send(plane, "GET", f"{MAPS}/a?includeObject=Object", accept=TABLE)
    partial = await send(plane, "GET", f"{MAPS}/a", accept=PARTIAL)
    partials = await send(plane, "GET", MAPS, accept=PARTIAL_LIST)

    assert table.body["kind"] == "Table"
    assert find(table.body, "rows", 0, "object", "kind") == "PartialObjectMetadata"
    assert find(full.body, "rows", 0, "object", "kind") == "ConfigMap"
    assert sorted(partial.body) == ["apiVersion", "kind", "metadata"]
    assert partials.body["kind"] == "PartialObjectMetadataList"
    assert (await send(plane, "GET", f"{MAPS}?includeObject=Some", accept=TABLE)).code == 400


async def test_a_collection_is_deleted_by_selection() -> None:
    plane = with_maps("a", "b", "c")

    answer = await send(plane, "DELETE", f"{MAPS}?fieldSelector=metadata.name!=b")

    assert (answer.body["kind"], names(answer)) == ("ConfigMapList", ["a", "c"])
    assert names(await send(plane, "GET", MAPS)) == ["b"]


async def test_a_dry_run_of_deletecollection_deletes_nothing() -> None:
    plane = with_maps("a")

    answer = await send(plane, "DELETE", f"{MAPS}?dryRun=All")

    assert names(answer) == ["a"]
    assert names(await send(plane, "GET", MAPS)) == ["a"]


async def test_status_and_scale_are_read_and_written() -> None:
    plane = with_widgets(subresources={"status": {}, "scale": SCALE})
    body: JsonObject = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    created = await send(plane, "POST", WIDGETS, {**body, "spec": {"replicas": 2}})

    status = await send(plane, "PATCH", f"{WIDGETS}/w/status", {"status": {"ready": True}}, content_type=MERGE)
    scale = await send(plane, "GET", f"{WIDGETS}/w/scale")
    scaled = await send(plane, "PUT", f"{WIDGETS}/w/scale", {**scale.body, "spec": {"replicas": 5}})
    patched = await send(plane, "PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 6}}, content_type=MERGE)

    assert created.code == 201
    assert find(status.body, "status", "ready") is True
    assert find((await send(plane, "GET", f"{WIDGETS}/w/status")).body, "status") == status.body["status"]
    assert (scale.body["kind"], scale.body["spec"]) == ("Scale", {"replicas": 2})
    assert find(scaled.body, "spec", "replicas") == 5
    assert find(patched.body, "spec", "replicas") == 6
    assert (await send(plane, "PUT", f"{WIDGETS}/w/status", {**body, "status": {}})).code == 422


async def test_a_namespace_is_finalized_by_put() -> None:
    plane = new_plane()
    await send(plane, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await send(plane, "DELETE", "/api/v1/namespaces/n")

    answer = await send(plane, "PUT", "/api/v1/namespaces/n/finalize", {"metadata": {"name": "n"}, "spec": {}})

    assert answer.code == 200
    assert (await send(plane, "GET", "/api/v1/namespaces/n")).code == 404


async def test_deprecated_versions_and_unknown_fields_give_warnings() -> None:
    plane = with_widgets(deprecated=True)
    body: JsonObject = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "extra": 1}

    created = await send(plane, "POST", WIDGETS, body)
    read = await send(plane, "GET", WIDGETS)

    assert created.headers["warning"] == '299 - "unknown field \\"extra\\""'
    assert read.headers["warning"] == '299 - "example.com/v1 Widget is deprecated"'


async def test_users_without_permissions_are_refused() -> None:
    plane = with_maps("a")

    codes = [
        (await send(plane, "GET", f"{MAPS}/a", impersonate_user="someone")).code,
        (await send(plane, "GET", f"{MAPS}?watch=true", impersonate_user="someone")).code,
        (await send(plane, "DELETE", MAPS, impersonate_user="someone")).code,
        (await send(plane, "DELETE", "/api/v1/namespaces/default", impersonate_user="someone")).code,
    ]

    assert codes == [403] * 4
    message = find_str((await send(plane, "DELETE", MAPS, impersonate_user="someone")).body, "message")
    assert 'User "someone" cannot deletecollection resource "configmaps"' in message


def event(chunk: bytes) -> JsonObject:
    return as_object(json.loads(chunk), "event")


@pytest.mark.parametrize(
    "path",
    [
        f"{MAPS}?watch=true&fieldSelector=metadata.name=b&timeoutSeconds=1",
        "/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1",
        "/api/v1/configmaps?watch&fieldSelector=metadata.name=b&timeoutSeconds=1",
    ],
)
async def test_a_single_object_can_be_watched_by_path_or_selector(path: str, autojump_clock: MockClock) -> None:
    plane = with_maps("a", "b")

    async with watching(plane, path) as events:
        assert plane.handler.metrics.watches.total() == 1
        found = [event(chunk) async for chunk in events]

    assert [(item["type"], find(item, "object", "metadata", "name")) for item in found] == [("ADDED", "b")]
    assert plane.handler.metrics.watches.total() == 0


async def test_a_table_watch_sends_column_definitions_once(autojump_clock: MockClock) -> None:
    plane = with_maps("a", "b")

    async with watching(plane, f"{MAPS}?watch=true&timeoutSeconds=1", accept=TABLE) as events:
        columns = [len(find_list(event(chunk), "object", "columnDefinitions")) async for chunk in events]

    assert columns[0] > 0
    assert columns[1:] == [0]


async def test_a_watch_of_metadata_sends_partial_objects(autojump_clock: MockClock) -> None:
    plane = with_maps("a")

    async with watching(plane, f"{MAPS}?watch=true", accept=PARTIAL_LIST) as events:
        assert [chunk async for chunk in events] == []
    async with watching(plane, f"{MAPS}?watch=true", accept=PARTIAL) as events:
        first = event(await anext(events))
        with trio.fail_after(5):
            await send(plane, "DELETE", f"{MAPS}/a")
            second = event(await anext(events))

    assert find(first, "object", "kind") == "PartialObjectMetadata"
    assert (second["type"], find(second, "object", "kind")) == ("DELETED", "PartialObjectMetadata")
    assert plane.handler.metrics.watches.total() == 0


async def test_a_watch_from_a_compacted_revision_is_expired(autojump_clock: MockClock) -> None:
    plane = new_plane(history_limit=1)
    maps = config_maps(plane.backend)
    for name in ("a", "b"):
        made(plane.backend, maps, thing(maps, name))

    async with watching(plane, f"{MAPS}?watch=true&resourceVersion=1", accept=TABLE) as events:
        found = [event(chunk) async for chunk in events]

    assert [item["type"] for item in found] == ["ERROR"]
    assert find(found[0], "object", "code") == 410


async def test_invalid_watches_are_refused_before_they_begin() -> None:
    plane = new_plane()
    assert (await send(plane, "GET", f"{MAPS}?watch=true&labelSelector=a in")).code == 400
    assert (await send(plane, "GET", f"{MAPS}?watch=true&sendInitialEvents=true")).code == 422
    assert (await send(plane, "GET", f"{MAPS}?watch=true", accept="text/html")).code == 406
    assert (await send(plane, "GET", CRDS, accept=TABLE)).code == 200
