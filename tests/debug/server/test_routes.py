"""The answers of the debug socket, route by route."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace

import pytest
import yaml

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import (
    DAEMON,
    EXPLANATIONS,
    HISTORY,
    HOOK_METRICS,
    HOSTILE,
    MANIFEST,
    METRICS,
    NODES,
    PACKAGES,
    STATISTICS,
    WHY,
    package,
    task,
)
from tests.exposition import parse
from wharfinger.debug.addresses import ELSEWHERE, MAX_SETTINGS
from wharfinger.debug.encoding.encoding import answer_to_json, queues_to_json
from wharfinger.debug.encoding.node import node_to_json, nodes_to_json
from wharfinger.debug.encoding.package import package_to_json, packages_to_json
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.encoding.statistics import statistics_to_json
from wharfinger.debug.server.answers import StreamedRoute
from wharfinger.debug.server.routes import ROUTES, make_handler
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.terminal_text import is_safe
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.peer import Peer
from wharfinger.runtime.inspector import (
    Inspector,
    InvalidSettings,
    RenderSnapshot,
    SettingsAnswer,
    UnknownSettings,
    ValidSettings,
)

OWNER = Peer(4711, os.geteuid(), os.getegid())
DUMP = "/api/v1/packages/dump"
QUEUES = "/api/v1/queues/dump"
SCHEDULER = "/api/v1/scheduler/dump"
STATISTICS_PATH = "/api/v1/statistics"
WHY_PATH = "/api/v1/why"
HISTORY_PATH = "/api/v1/history"
RENDER = "/api/v1/packages/render"
VALIDATE = "/api/v1/packages/validate"


async def get(
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    inspector: Inspector | None = None,
    method: str = "GET",
    body: bytes = b"",
    peer: Peer | None = OWNER,
) -> Response:
    parameters = {key: (value,) for key, value in (query or {}).items()}
    answer = await make_handler(inspector or CannedInspector())(Request(method, path, parameters, {}, body, peer))
    assert isinstance(answer, Response)
    return answer


async def test_the_daemon_answers_that_it_is_healthy() -> None:
    assert await get("/healthz") == Response(200, b"ok\n", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("ready", "draining", "status", "text"),
    [
        (True, False, 200, b"ready\n"),
        (False, False, 503, b"not ready: starting\n"),
        (False, True, 503, b"not ready: shutting down\n"),
    ],
)
async def test_readiness_depends_on_start_and_draining(ready: bool, draining: bool, status: int, text: bytes) -> None:
    inspector = CannedInspector(base=replace(DAEMON, ready=ready, draining=draining))
    answer = await get("/readyz", inspector=inspector)
    assert (answer.status, answer.body) == (status, text)
    assert answer.content_type.startswith("text/plain")


async def test_readiness_reports_the_missing_rights() -> None:
    waits = replace(DAEMON, ready=False, standby="lacks rights: create leases.coordination.k8s.io")
    answer = await get("/readyz", inspector=CannedInspector(base=waits))
    assert (answer.status, answer.body) == (503, b"not ready: lacks rights: create leases.coordination.k8s.io\n")


async def test_endpoints_lists_every_route_and_every_route_answers() -> None:
    listed = (await get("/endpoints")).body.decode().splitlines()
    assert [line.partition(" ")[2] for line in listed] == list(ROUTES)
    paths = ("/healthz", "/readyz", "/endpoints", DUMP, QUEUES, SCHEDULER, STATISTICS_PATH, f"{RENDER}/{{name}}")
    assert {*(f"GET {path}" for path in paths), f"POST {VALIDATE}/{{name}}"} <= set(listed)
    everything = (*PACKAGES, package("global", kind="Module"))
    for line in listed:
        method, path = line.split(" ")
        query = {"package": "prod.shop"} if "package" in ROUTES[path].parameters else {}
        place = path.replace("{name}", "prod.shop").replace("{format}", ".json")
        if isinstance(ROUTES[path], StreamedRoute):
            continue
        found = await get(place, query, method=method, inspector=CannedInspector(contents=everything))
        assert found.status == 200, place


async def test_documents_are_answered_as_json_and_yaml() -> None:
    for path, expected in (
        ("/api/v1/daemon", record_to_json(replace(DAEMON, packages=3))),
        (DUMP, packages_to_json(PACKAGES)),
        (QUEUES, queues_to_json(each.queue for each in PACKAGES)),
        (SCHEDULER, nodes_to_json(NODES)),
        (STATISTICS_PATH, statistics_to_json(STATISTICS)),
    ):
        for query in ({}, {"output": "json"}):
            answer = await get(path, query)
            assert (answer.status, answer.content_type) == (200, "application/json")
            assert answer.body.endswith(b"}\n")
            assert json.loads(answer.body) == expected
        answer = await get(path, {"output": "yaml"})
        assert (answer.status, answer.content_type) == (200, "application/yaml")
        assert yaml.safe_load(answer.body) == expected


async def test_metrics_are_answered_with_and_without_hooks() -> None:
    for path, query, text in (
        ("/metrics", {}, METRICS + ELSEWHERE),
        ("/metrics", {"hooks": "false"}, METRICS + ELSEWHERE),
        ("/metrics", {"hooks": "true"}, METRICS + HOOK_METRICS),
        ("/metrics/hooks", {}, HOOK_METRICS),
    ):
        answer = await get(path, query)
        assert (answer.status, answer.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert answer.body.decode() == text
        parse(text)
    assert parse(HOOK_METRICS)["items"].value(hook="a.sh", text='\u2713 \u202e"\n') == 3
    for path, query, why in (
        ("/metrics", {"hooks": "yes"}, "unknown hooks: yes; known: false, true\n"),
        ("/metrics/hooks", {"hooks": "true"}, "unknown query parameter: hooks; known here: none\n"),
    ):
        answer = await get(path, query)
        assert (answer.status, answer.body.decode()) == (400, why)


async def test_statistics_of_a_starting_daemon_are_null() -> None:
    answer = await get(STATISTICS_PATH, inspector=CannedInspector(counted=None))
    assert (answer.status, answer.body) == (200, b"null\n")


async def test_one_item_is_selected_by_name() -> None:
    assert json.loads((await get(DUMP, {"name": "prod.shop"})).body) == package_to_json(PACKAGES[1])
    assert json.loads((await get(QUEUES, {"name": "prod.shop"})).body) == queues_to_json([PACKAGES[1].queue])
    assert json.loads((await get(SCHEDULER, {"name": "prod.shop"})).body) == node_to_json(NODES[1])


@pytest.mark.parametrize("path", [DUMP, QUEUES, SCHEDULER])
@pytest.mark.parametrize("name", ["no.such", "", "prod"])
async def test_an_unknown_name_is_null(path: str, name: str) -> None:
    answer = await get(path, {"name": name})
    assert (answer.status, answer.body) == (200, b"null\n")
    assert (await get(path, {"name": name, "output": "yaml"})).body in {b"null\n...\n", b"null\n"}


async def test_unknown_paths_and_queries_are_refused() -> None:
    for path, query, status, text in (
        (DUMP, {"output": "xml"}, 400, "unknown output: xml; known: json, yaml"),
        (DUMP, {"output": ""}, 400, "unknown output"),
        (DUMP, {"nmae": "prod.shop"}, 400, "unknown query parameter: nmae; known here: name, output, watch"),
        ("/healthz", {"output": "json"}, 400, "unknown query parameter: output; known here: none"),
        ("/nothing", {}, 404, "no such path: /nothing; /endpoints lists all paths"),
        (DUMP + "/", {}, 404, "no such path"),
        ("*", {}, 404, "no such path"),
        (RENDER, {}, 404, "no such path"),
        (f"{RENDER}/prod.shop", {"output": "json"}, 400, "unknown query parameter: output; known here: show-secrets"),
        (f"{RENDER}/prod.shop", {"show-secrets": ""}, 400, "unknown show-secrets: ; known: false, true"),
        (f"{RENDER}/no.such", {}, 404, "no package named 'no.such'\n"),
        (f"{RENDER}/", {}, 404, "no package named ''\n"),
        (f"{RENDER}/prod.shop/more", {}, 404, "no package named 'prod.shop/more'\n"),
        (f"{RENDER}/ingress", {}, 400, "package has no Helm chart\n"),
        (f"{RENDER}/test.shop", {}, 500, "render failed: template: no such function\n"),
    ):
        answer = await get(path, query)
        assert answer.status == status
        assert answer.content_type.startswith("text/plain")
        assert text in answer.body.decode()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get"])
async def test_methods_that_write_are_refused(method: str) -> None:
    answer = await get(DUMP, method=method)
    assert (answer.status, answer.headers) == (405, (("Allow", "GET, HEAD"),))
    assert (await get("/nothing", method=method)).status == 404
    assert (await get(DUMP, method="HEAD")).status == 200


async def test_a_rendered_manifest_is_redacted_by_default() -> None:
    for query in ({}, {"show-secrets": "false"}):
        answer = await get(f"{RENDER}/prod.shop", query)
        assert (answer.status, answer.content_type) == (200, "application/yaml")
        assert answer.body.decode() == MANIFEST.replace("aHVudGVyMg==", "'***'")
    answer = await get(f"{RENDER}/prod.shop", {"show-secrets": "true"})
    assert (answer.status, answer.content_type, answer.body.decode()) == (200, "application/yaml", MANIFEST)


@pytest.mark.parametrize(
    ("peer", "status"),
    [(OWNER, 200), (Peer(1, 0, 0), 200), (Peer(1, os.geteuid() + 4711, 0), 403), (None, 403)],
    ids=["owner", "root", "another", "unknown"],
)
async def test_only_some_users_see_secrets_and_access_is_recorded(peer: Peer | None, status: int) -> None:
    inspector = CannedInspector()
    answer = await get(f"{RENDER}/prod.shop", {"show-secrets": "true"}, inspector=inspector, peer=peer)
    assert answer.status == status
    assert (MANIFEST in answer.body.decode()) == (status == 200)
    told = [] if peer is None or status != 200 else [f"user {peer.uid} (process {peer.pid})"]
    assert inspector.seen_by == told
    assert (await get(f"{RENDER}/prod.shop", inspector=inspector, peer=peer)).status == 200
    assert inspector.seen_by == told


async def test_facts_and_global_values_are_answered() -> None:
    inspector = CannedInspector(contents=(package("global", kind="Module", settings={"a": 1}),))
    answer = await get("/api/v1/packages/global/dump", inspector=inspector)
    assert json.loads(answer.body)["settings"] == {"a": 1}
    assert (await get("/api/v1/packages/global/dump")).body == b"null\n"
    answer = await get("/api/v1/requirements/dump")
    assert json.loads(answer.body) == {
        "kubernetes": "1.34.1",
        "platform": "1.70.0",
        "edition": "EE",
        "bundle": "Default",
        "bootstrapped": True,
    }
    assert (await get("/api/v1/requirements/dump", inspector=CannedInspector(facts=None))).body == b"null\n"


async def test_watch_is_accepted_only_for_documents() -> None:
    for path, query, text in (
        (DUMP, {"watch": "yes"}, "unknown watch: yes; known: 0, 1, false, true"),
        (DUMP, {"watch": "1", "output": "yaml"}, "watch: expected output=json"),
        ("/healthz", {"watch": "1"}, "unknown query parameter: watch"),
        (WHY_PATH, {"watch": "1"}, "query parameter package"),
    ):
        answer = await get(path, query)
        assert answer.status == 400
        assert text in answer.body.decode()
    assert (await get(DUMP, {"watch": "0"})).status == 200


async def test_secrets_that_a_package_names_are_in_no_answer() -> None:
    told = replace(
        package(message="found t0p-drawer", settings={"note": "t0p-drawer"}, tasks=(task(1, error="not t0p-drawer"),)),
        values={"deep": ["a t0p-drawer"]},
        hooks=(replace(PACKAGES[0].hooks[0], last_error="t0p-drawer?", bindings=("schedule t0p-drawer 0 * * * *",)),),
        secrets=("t0p-drawer",),
    )
    hidden = CannedInspector(
        contents=(told,),
        nodes=(replace(NODES[1], message="t0p-drawer says no"),),
        rendered={"prod.shop": RenderSnapshot("# t0p-drawer\na: b t0p-drawer c\n", problem="", has_chart=True)},
    )
    for path in (DUMP, QUEUES, SCHEDULER, f"{RENDER}/prod.shop"):
        answer = await get(path, inspector=hidden)
        assert answer.status == 200
        assert b"t0p-drawer" not in answer.body
        assert b"***" in answer.body
    broken = replace(hidden, rendered={"prod.shop": RenderSnapshot("", problem="t0p-drawer: bad", has_chart=True)})
    assert (await get(f"{RENDER}/prod.shop", inspector=broken)).body == b"render failed: ***: bad\n"


async def test_a_manifest_that_cannot_be_redacted_is_not_shown() -> None:
    inspector = CannedInspector(
        rendered={"prod.shop": RenderSnapshot("a: {hunter2", problem="", has_chart=True)},
    )
    answer = await get(f"{RENDER}/prod.shop", inspector=inspector)
    assert answer.status == 500
    assert answer.body.startswith(b"render failed: it cannot be redacted: the rendered manifest")
    assert b"hunter2" not in answer.body
    assert (await get(f"{RENDER}/prod.shop", {"show-secrets": "true"}, inspector=inspector)).body == b"a: {hunter2"


async def test_a_package_deleted_while_rendering_is_answered() -> None:
    class Going(CannedInspector):
        async def render(self, name: str, *, shown_to: str = "") -> RenderSnapshot | None:
            rendered = await super().render(name, shown_to=shown_to)
            self.contents = ()
            return rendered

    assert (await get(f"{RENDER}/prod.shop", inspector=Going())).status == 200


async def test_settings_are_validated() -> None:
    inspector = CannedInspector()
    for name, expected in ((name, inspector.answers[name]) for name in ("prod.shop", "test.shop")):
        answer = await get(
            f"{VALIDATE}/{name}", {"settings-version": "7"}, inspector=inspector, method="POST", body=b'{"a": 1}'
        )
        assert (answer.status, json.loads(answer.body)) == (200, answer_to_json(expected))
        assert inspector.asked.pop() == (name, {"a": 1}, 7)
    answer = await get(f"{VALIDATE}/ingress", {"output": "yaml"}, inspector=inspector, method="POST")
    assert yaml.safe_load(answer.body) == {"verdict": "Valid", "version": "1.2.3", "problems": [], "warnings": []}
    assert inspector.asked == [("ingress", {}, 0)]


@pytest.mark.parametrize(
    ("name", "query", "body", "status", "text"),
    [
        ("no.such", {}, b"{}", 404, "no package named 'no.such'\n"),
        ("prod.shop", {}, b"[]", 400, "settings: expected an object, found a list"),
        ("prod.shop", {}, b"{", 400, "settings: "),
        ("prod.shop", {}, b" " * (MAX_SETTINGS + 1), 400, f"settings: {MAX_SETTINGS + 1} bytes is over the limit"),
        ("prod.shop", {"settings-version": "-1"}, b"{}", 400, "settings-version: -1: expected a number up to 1000"),
        ("prod.shop", {"settings-version": "1001"}, b"{}", 400, "settings-version: 1001: expected"),
        ("prod.shop", {"settings-version": ""}, b"{}", 400, "settings-version: : expected"),
        ("prod.shop", {"settings-version": "0000000001"}, b"{}", 400, "settings-version: 0000000001: expected"),
        ("prod.shop", {"settings-version": "9" * 5000}, b"{}", 400, f"settings-version: {'9' * 100}: expected"),
        ("prod.shop", {"settings-version": "0" * 9 + "9" * 5000}, b"{}", 400, f"settings-version: {'0' * 9}9"),
        ("prod.shop", {"output": "xml"}, b"{}", 400, "unknown output: xml"),
        ("prod.shop", {"show-secrets": "true"}, b"{}", 400, "unknown query parameter: show-secrets"),
    ],
)
async def test_invalid_questions_about_settings_are_refused(
    name: str, query: dict[str, str], body: bytes, status: int, text: str
) -> None:
    answer = await get(f"{VALIDATE}/{name}", query, method="POST", body=body)
    assert answer.status == status
    assert text in answer.body.decode()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_settings_are_validated_only_with_post(method: str) -> None:
    answer = await get(f"{VALIDATE}/prod.shop", method=method)
    assert (answer.status, answer.headers) == (405, (("Allow", "POST"),))


async def test_answers_about_settings_are_redacted() -> None:
    told = replace(package(), secrets=("t0p-drawer",))
    wrong = (Problem("a", "t0p-drawer is too short"),)
    for given in (InvalidSettings("1", wrong, wrong), ValidSettings("1", wrong), UnknownSettings("t0p-drawer")):
        inspector = CannedInspector(contents=(told,), answers={told.name: given})
        answer = await get(f"{VALIDATE}/{told.name}", inspector=inspector, method="POST")
        assert b"t0p-drawer" not in answer.body
        assert b"***" in answer.body


async def test_a_package_deleted_during_validation_is_answered() -> None:
    class Going(CannedInspector):
        async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
            answer = await super().validate(name, settings, version)
            self.contents = ()
            return answer

    assert (await get(f"{VALIDATE}/prod.shop", inspector=Going(), method="POST")).status == 200


async def test_secrets_of_settings_are_in_no_document() -> None:
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
async def test_hostile_values_are_escaped(output: str) -> None:
    inspector = CannedInspector(contents=(package(message=HOSTILE, settings={"a": HOSTILE, HOSTILE[:20]: 1}),))
    body = (await get(DUMP, {"output": output}, inspector=inspector)).body.decode()
    assert is_safe(body, allow="\n")
    assert yaml.safe_load(body)["apps"]["prod.shop"]["status"]["message"] == HOSTILE.replace("\ud800", "?")
    assert (await get(f"/{HOSTILE}", inspector=inspector)).status == 404


async def test_history_is_answered_and_redacted() -> None:
    secret = "hunter2-planted"
    told = replace(HISTORY, events=tuple(replace(event, cause=f"with {secret}") for event in HISTORY.events))
    owner = replace(PACKAGES[0], secrets=(secret,))
    inspector = CannedInspector(contents=(owner,), histories={"prod.shop": told})
    answer = await get(HISTORY_PATH, {"package": "prod.shop"}, inspector=inspector)
    assert answer.status == 200
    assert secret.encode() not in answer.body
    assert b"with ***" in answer.body
    assert (await get(HISTORY_PATH, {"package": "no.such"})).body.strip() == b"null"
    assert (await get(HISTORY_PATH)).status == 400


async def test_a_past_state_is_explained() -> None:
    query = {"package": "prod.shop", "at": "2026-11-21T04:05:00Z"}
    assert b"causes" in (await get(WHY_PATH, query)).body
    early = query | {"at": "2026-11-20T00:00:00Z"}
    assert (await get(WHY_PATH, early)).body.strip() == b"null"
    answer = await get(WHY_PATH, query | {"at": "noon"})
    assert (answer.status, answer.body) == (400, b"at: noon: expected a time like 2026-11-21T04:03:00Z\n")


async def test_the_current_state_is_explained() -> None:
    for name, expected in EXPLANATIONS.items():
        answer = await get(WHY_PATH, {"package": name})
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert json.loads(answer.body) == record_to_json(expected)
    answer = await get(WHY_PATH, {"package": "prod.shop", "output": "yaml"})
    assert yaml.safe_load(answer.body)["causes"][1]["subject"] == "ingress"
    assert (await get(WHY_PATH, {"package": "no.such"})).body == b"null\n"


async def test_a_package_must_be_named_to_be_explained() -> None:
    answer = await get(WHY_PATH)
    assert (answer.status, answer.body) == (400, b"query parameter package: the name of a package is missing\n")
    assert (await get(WHY_PATH, {"package": "prod.shop", "output": "text"})).status == 400


async def test_secrets_of_all_packages_are_masked_in_explanations() -> None:
    """The explanation of one package may quote texts of another package, whose secrets must be masked as well."""
    inspector = CannedInspector((*PACKAGES, package("ab.c", settings={"password": "hunter2"})))
    inspector.explanations = {
        "prod.shop": replace(
            WHY, remedy="ask hunter2", also=("hunter2",), causes=(replace(WHY.causes[0], message="hunter2"),)
        )
    }
    answer = await get(WHY_PATH, {"package": "prod.shop"}, inspector=inspector)
    assert b"hunter2" not in answer.body
    assert answer.body.count(b"***") == 3
