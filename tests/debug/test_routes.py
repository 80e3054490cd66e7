"""What the debug socket answers, route by route."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml

from tests.debug.canned import CannedInspector
from tests.debug.samples import DAEMON, HOSTILE, PACKAGES, package, task
from wharfinger.debug.encoding import daemon_to_json, package_to_json, packages_to_json, queues_to_json
from wharfinger.debug.routes import ROUTES, make_handler
from wharfinger.debug.text import is_safe
from wharfinger.formats.json_value import JsonObject
from wharfinger.httpd.messages import Request, Response
from wharfinger.runtime.inspector import Inspector

DUMP = "/api/v1/packages/dump"
QUEUES = "/api/v1/queues/dump"


async def get(
    path: str, query: Mapping[str, str] | None = None, *, inspector: Inspector | None = None, method: str = "GET"
) -> Response:
    parameters = {key: (value,) for key, value in (query or {}).items()}
    answer = await make_handler(inspector or CannedInspector())(Request(method, path, parameters, {}, b""))
    assert isinstance(answer, Response)
    return answer


async def test_health() -> None:
    assert await get("/healthz") == Response(200, b"ok\n", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("ready", "draining", "status", "text"),
    [
        (True, False, 200, b"ready\n"),
        (False, False, 503, b"not ready: starting\n"),
        (False, True, 503, b"not ready: shutting down\n"),
    ],
)
async def test_readiness(ready: bool, draining: bool, status: int, text: bytes) -> None:
    inspector = CannedInspector(base=replace(DAEMON, ready=ready, draining=draining))
    answer = await get("/readyz", inspector=inspector)
    assert (answer.status, answer.body) == (status, text)
    assert answer.content_type.startswith("text/plain")


async def test_endpoints_lists_every_route_and_every_route_answers() -> None:
    listed = (await get("/endpoints")).body.decode().splitlines()
    assert listed == [f"GET {path}" for path in ROUTES]
    assert {"GET /healthz", "GET /readyz", "GET /endpoints", f"GET {DUMP}", f"GET {QUEUES}"} <= set(listed)
    for line in listed:
        assert (await get(line.removeprefix("GET "))).status == 200


async def test_documents() -> None:
    for path, expected in (
        ("/api/v1/daemon", daemon_to_json(replace(DAEMON, packages=3))),
        (DUMP, packages_to_json(PACKAGES)),
        (QUEUES, queues_to_json(each.queue for each in PACKAGES)),
    ):
        for query in ({}, {"output": "json"}):
            answer = await get(path, query)
            assert (answer.status, answer.content_type) == (200, "application/json")
            assert answer.body.endswith(b"}\n")
            assert json.loads(answer.body) == expected
        answer = await get(path, {"output": "yaml"})
        assert (answer.status, answer.content_type) == (200, "application/yaml")
        assert yaml.safe_load(answer.body) == expected


async def test_one_by_name() -> None:
    assert json.loads((await get(DUMP, {"name": "prod.shop"})).body) == package_to_json(PACKAGES[1])
    assert json.loads((await get(QUEUES, {"name": "prod.shop"})).body) == queues_to_json([PACKAGES[1].queue])


@pytest.mark.parametrize("path", [DUMP, QUEUES])
@pytest.mark.parametrize("name", ["no.such", "", "prod"])
async def test_an_unknown_name_is_null(path: str, name: str) -> None:
    answer = await get(path, {"name": name})
    assert (answer.status, answer.body) == (200, b"null\n")
    assert (await get(path, {"name": name, "output": "yaml"})).body in {b"null\n...\n", b"null\n"}


async def test_nothing_is_a_silent_default() -> None:
    for path, query, status, text in (
        (DUMP, {"output": "xml"}, 400, "unknown output: xml; known: json, yaml"),
        (DUMP, {"output": ""}, 400, "unknown output"),
        (DUMP, {"nmae": "prod.shop"}, 400, "unknown query parameter: nmae; known here: name, output"),
        ("/healthz", {"output": "json"}, 400, "unknown query parameter: output; known here: none"),
        ("/nothing", {}, 404, "no such path: /nothing; /endpoints lists them"),
        (DUMP + "/", {}, 404, "no such path"),
        ("*", {}, 404, "no such path"),
    ):
        answer = await get(path, query)
        assert answer.status == status
        assert answer.content_type.startswith("text/plain")
        assert text in answer.body.decode()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get"])
async def test_reading_only(method: str) -> None:
    answer = await get(DUMP, method=method)
    assert (answer.status, answer.headers) == (405, (("Allow", "GET, HEAD"),))
    assert (await get("/nothing", method=method)).status == 404
    assert (await get(DUMP, method="HEAD")).status == 200


async def test_secrets_stay_inside() -> None:
    settings: JsonObject = {"replicas": 2, "database": {"password": "hunter2", "host": "db"}, "token": "s3cr3t"}
    told = package(settings=settings, message="login as app:hunter2 failed", tasks=(task(1, error="bad token s3cr3t"),))
    inspector = CannedInspector(contents=(told,))
    for path in (DUMP, QUEUES):
        for query in ({}, {"name": "prod.shop"}, {"output": "yaml"}):
            body = (await get(path, query, inspector=inspector)).body.decode()
            assert "hunter2" not in body
            assert "s3cr3t" not in body
            assert "bad token" in body
            assert ("password" in body) == (path == DUMP)


@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_hostile_values(output: str) -> None:
    inspector = CannedInspector(contents=(package(message=HOSTILE, settings={"a": HOSTILE, HOSTILE[:20]: 1}),))
    body = (await get(DUMP, {"output": output}, inspector=inspector)).body.decode()
    assert is_safe(body, allow="\n")
    assert yaml.safe_load(body)["apps"]["prod.shop"]["status"]["message"] == HOSTILE.replace("\ud800", "?")
    assert (await get(f"/{HOSTILE}", inspector=inspector)).status == 404
