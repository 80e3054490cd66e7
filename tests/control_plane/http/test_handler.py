import base64
from collections.abc import Mapping

import pytest
import trio

from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.http.handler import WARNINGS_CHARS, ControlPlaneHandler
from wharfinger.control_plane.service import ControlPlane, assemble
from wharfinger.control_plane.storage.interface import Change, Key, StorageError
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, encode_json, find, find_list, find_str
from wharfinger.httpd.messages import Request, Response, StreamingResponse, Upgrade
from wharfinger.httpd.target import parse_target

TOKEN = "sesame"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DISCOVERY_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def plane(token: str | None = None) -> ControlPlane:
    return assemble(MemoryStorage(), lambda: NOW, None, token)


async def answer(
    handler: ControlPlaneHandler,
    method: str,
    target: str,
    body: JsonObject | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response | StreamingResponse:
    parsed = parse_target(target.encode())
    data = b"" if body is None else encode_json(body)
    found = await handler(Request(method, parsed.path, parsed.query, headers or {}, data))
    assert not isinstance(found, Upgrade)
    return found


async def ask(
    handler: ControlPlaneHandler,
    method: str,
    target: str,
    body: JsonObject | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    response = await answer(handler, method, target, body, headers)
    assert isinstance(response, Response)
    return response


async def document(handler: ControlPlaneHandler, target: str, accept: str = "") -> JsonObject:
    response = await ask(handler, "GET", target, headers={"accept": accept} if accept else None)
    assert response.status == 200, response.body
    return said(response)


def said(response: Response) -> JsonObject:
    return as_object(decode_json(response.body, max_bytes=10_000_000, what="answer"), "answer")


def config_map(name: str, **fields: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


async def test_an_object_is_created_read_and_deleted() -> None:
    handler = plane().handler

    created = await ask(handler, "POST", CONFIG_MAPS, {**config_map("a"), "data": {"k": "v"}})
    read = await ask(handler, "GET", f"{CONFIG_MAPS}/a")
    deleted = await ask(handler, "DELETE", f"{CONFIG_MAPS}/a")
    gone = await ask(handler, "GET", f"{CONFIG_MAPS}/a")

    assert (created.status, read.status, deleted.status, gone.status) == (201, 200, 200, 404)
    assert created.body == read.body
    assert find(said(read), "data", "k") == "v"
    assert find(said(read), "metadata", "creationTimestamp") == "2026-11-21T04:00:00Z"
    assert said(gone)["reason"] == "NotFound"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
async def test_the_server_is_healthy(path: str) -> None:
    response = await ask(plane().handler, "GET", path)
    assert (response.status, response.body, response.content_type) == (200, b"ok", "text/plain; charset=utf-8")


async def test_discovery_documents_are_served() -> None:
    control_plane = plane()
    handler = control_plane.handler
    handler.address = "127.0.0.1:4321"

    assert "/apis/apps/v1" in find_list(await document(handler, "/"), "paths")
    assert find_str(await document(handler, "/version"), "gitVersion").startswith("v1.")
    core = await document(handler, "/api")
    assert (core["versions"], find(core, "serverAddressByClientCIDRs", 0, "serverAddress")) == (
        ["v1"],
        "127.0.0.1:4321",
    )
    groups = [find(group, "name") for group in find_list(await document(handler, "/apis"), "groups")]
    assert "apps" in groups
    assert (await document(handler, "/apis/apps"))["name"] == "apps"
    assert (await document(handler, "/apis/apps/v1"))["groupVersion"] == "apps/v1"
    assert (await document(handler, "/api/v1"))["groupVersion"] == "v1"


@pytest.mark.parametrize(("path", "first"), [("/api", ""), ("/apis", "apps")])
async def test_aggregated_discovery_is_served_on_request(path: str, first: str) -> None:
    response = await ask(plane().handler, "GET", path, headers={"accept": f"{DISCOVERY_V2},application/json"})

    assert response.content_type == DISCOVERY_V2
    assert first in [find(item, "metadata", "name") or "" for item in find_list(said(response), "items")]


@pytest.mark.parametrize(
    "path",
    [
        "/apis/none.example.com",
        "/apis/none.example.com/v1",
        "/apis/nosuch.example.com",
        "/apis/nosuch.example.com/v1/nothings",
        "/no/such/place",
        "/openapi/v2/more",
    ],
)
async def test_an_unserved_path_is_a_404_in_plain_text(path: str) -> None:
    response = await ask(plane().handler, "GET", path)
    assert (response.status, response.body) == (404, b"404 page not found\n")
    assert response.content_type == "text/plain; charset=utf-8"


async def test_documents_allow_only_get() -> None:
    response = await ask(plane().handler, "POST", "/version")
    assert (response.status, said(response)["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_resources_refuse_head_and_options(method: str) -> None:
    response = await ask(plane().handler, method, CONFIG_MAPS)
    assert response.status == 405


async def test_openapi_documents_are_served() -> None:
    handler = plane().handler

    version_2 = await document(handler, "/openapi/v2")
    index = await document(handler, "/openapi/v3")
    apps = await document(handler, "/openapi/v3/apis/apps/v1")

    assert version_2["swagger"] == "2.0"
    assert find_str(index, "paths", "apis/apps/v1", "serverRelativeURL").startswith("/openapi/v3/apis/apps/v1?hash=")
    assert "/apis/apps/v1/namespaces/{namespace}/deployments" in as_object(apps["paths"], "paths")
    assert (await ask(handler, "GET", "/openapi/v3/apis/none/v1")).status == 404
    assert (
        await ask(handler, "GET", "/openapi/v2", headers={"accept": "application/com.github.proto-openapi.spec.v9"})
    ).status == 406
    asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    protobuf = await ask(handler, "GET", "/openapi/v2", headers={"accept": asked})
    assert (protobuf.status, protobuf.content_type) == (200, asked.replace("@", "."))


async def test_the_openapi_index_is_built_once_per_catalog_change() -> None:
    handler = plane().handler

    first, again = await document(handler, "/openapi/v3"), await document(handler, "/openapi/v3")
    created = await ask(handler, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    after = await document(handler, "/openapi/v3")

    assert created.status == 201
    assert first == again
    assert "apis/example.com/v1" not in as_object(first["paths"], "paths")
    assert "apis/example.com/v1" in as_object(after["paths"], "paths")


async def test_metrics_count_requests() -> None:
    handler = plane().handler
    await ask(handler, "GET", "/version")
    await ask(handler, "GET", f"{CONFIG_MAPS}/none")

    text = (await ask(handler, "GET", "/metrics")).body.decode()

    asked = 'component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="GET"'
    assert f'apiserver_request_total{{code="404",{asked},version="v1"}} 1\n' in text


@pytest.mark.parametrize(
    ("headers", "path", "code"),
    [
        ({}, "/version", 200),
        ({}, "/metrics", 403),
        ({}, "/no/such/place", 403),
        ({}, CONFIG_MAPS, 403),
        ({"authorization": "Bearer wrong"}, "/version", 401),
        ({"authorization": f"Bearer {TOKEN}"}, CONFIG_MAPS, 200),
        ({"authorization": "Basic " + base64.b64encode(b"x:sesame").decode()}, "/metrics", 200),
        ({"authorization": f"Bearer {TOKEN}", "impersonate-user": "jo"}, "/apis", 200),
        ({"authorization": f"Bearer {TOKEN}", "impersonate-user": "jo"}, CONFIG_MAPS, 403),
    ],
)
async def test_requests_are_authenticated_and_authorized(headers: dict[str, str], path: str, code: int) -> None:
    response = await ask(plane(TOKEN).handler, "GET", path, headers=headers)
    assert response.status == code
    if code != 200:
        assert said(response)["kind"] == "Status"


async def test_answers_are_available_as_yaml_and_as_tables() -> None:
    handler = plane().handler
    yaml = await ask(handler, "GET", "/api/v1/namespaces/default", headers={"accept": "application/yaml"})
    table = await document(handler, "/api/v1/namespaces", "application/json;as=Table;v=v1;g=meta.k8s.io")

    assert (yaml.content_type, b"\nkind: Namespace\n" in yaml.body) == ("application/yaml", True)
    assert (table["kind"], len(find_list(table, "rows"))) == ("Table", 4)


async def test_warnings_about_any_field_name_are_valid_headers() -> None:
    body: JsonObject = {**config_map("a"), 'x"\r\nset-cookie: é\\': 1}
    response = await ask(plane().handler, "POST", f"{CONFIG_MAPS}?fieldValidation=Warn", body)

    assert response.status == 201
    assert ("warning", r'299 - "unknown field \"x\\\"\\r\\nset-cookie: é\\\\\""') in response.headers


async def test_the_length_of_warnings_is_limited() -> None:
    body: JsonObject = {**config_map("a"), **{f"field{number}": 1 for number in range(1000)}}
    response = await ask(plane().handler, "POST", f"{CONFIG_MAPS}?fieldValidation=Warn", body)

    texts = [value for name, value in response.headers if name == "warning"]
    assert 0 < len(texts) < 1000
    assert sum(len(text) - len(r'299 - "\\"') for text in texts) <= WARNINGS_CHARS


async def test_a_temporary_failure_has_a_retry_after_header() -> None:
    response = await ask(plane().handler, "GET", f"{CONFIG_MAPS}?resourceVersion=1000000")

    assert response.status == 504
    assert ("retry-after", "1") in response.headers
    assert find(said(response), "details", "retryAfterSeconds") == 1


async def test_a_watch_streams_events(autojump_clock: trio.testing.MockClock) -> None:
    handler = plane().handler
    response = await answer(handler, "GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=5")
    assert isinstance(response, StreamingResponse)
    assert (response.status, response.content_type) == (200, "application/json")

    async with response.open_chunks() as chunks:
        assert handler.metrics.watches.total() == 1
        await ask(handler, "POST", CONFIG_MAPS, config_map("a"))
        events = [as_object(decode_json(chunk, max_bytes=100_000, what="event"), "event") async for chunk in chunks]

    assert [(event["type"], find(event, "object", "metadata", "name")) for event in events] == [("ADDED", "a")]
    assert handler.metrics.watches.total() == 0
    assert trio.current_time() == pytest.approx(autojump_clock.current_time())


async def test_a_watch_ends_when_its_client_disconnects() -> None:
    handler = plane().handler
    response = await answer(handler, "GET", "/api/v1/namespaces?watch=1")
    assert isinstance(response, StreamingResponse)

    async with response.open_chunks() as chunks:
        await anext(chunks)

    assert handler.metrics.watches.total() == 0


class FullStorage(MemoryStorage):
    """A storage that refuses to store objects once ``full`` is set."""

    full = False

    def put(self, key: Key, obj: JsonObject) -> Change:
        if self.full:
            raise StorageError(f"no room for {key.name}")
        return super().put(key, obj)


async def test_a_write_refused_by_the_storage_is_an_internal_error() -> None:
    storage = FullStorage()
    handler = assemble(storage, lambda: NOW, None, None).handler
    storage.full = True

    refused = await ask(handler, "POST", CONFIG_MAPS, config_map("a"))

    assert (refused.status, said(refused)["message"]) == (500, "no room for a")
    assert (await ask(handler, "GET", f"{CONFIG_MAPS}/a")).status == 404
