"""The schema of the socket's answers. It matches the answers, and describes each of their keys."""

import jsonschema

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES
from wharfinger.debug.encoding.schema import api_schema
from wharfinger.debug.server.routes import ROUTES, make_handler
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find_object
from wharfinger.httpd.messages import Request, Response, StreamingResponse


def closed(schema: JsonValue) -> JsonValue:
    """Return a copy of the schema in which objects may have only the keys that the schema names."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    more: JsonObject = {"additionalProperties": False} if "properties" in schema else {}
    return {key: closed(value) for key, value in schema.items()} | more


async def answer_of(path: str) -> JsonValue:
    plain, _, named = path.partition("?")
    place = plain.replace("{name}", "prod.shop")
    route = ROUTES[plain]
    query = {"package": ("prod.shop",)} if "package" in route.parameters else {"name": ("prod.shop",)} if named else {}
    body = b"{}" if route.post else b""
    if "seconds" in route.parameters:
        query = {"seconds": ("0.05",)}
    answer = await make_handler(CannedInspector())(Request(route.methods[0], place, query, {}, body))
    assert isinstance(answer, Response | StreamingResponse)
    assert answer.status == 200, answer
    if isinstance(answer, Response):
        return decode_json(answer.body, max_bytes=10_000_000, what=path)
    async with answer.open_chunks() as chunks:
        return decode_json(b"".join([chunk async for chunk in chunks]), max_bytes=10_000_000, what=path)


def validator(made: JsonObject, path: str) -> jsonschema.Draft202012Validator:
    """Return a validator for the answers of a path."""
    definitions: JsonObject = {"$defs": made["$defs"]}
    return jsonschema.Draft202012Validator(definitions | as_object(find_object(made, "paths")[path], path))


async def test_answers_match_the_schema() -> None:
    made = as_object(closed(api_schema()), "the schema")
    jsonschema.Draft202012Validator.check_schema(made)
    for path, schema in find_object(made, "paths").items():
        jsonschema.Draft202012Validator.check_schema(as_object(schema, path))
        validator(made, path).validate(await answer_of(path))


async def test_a_wrong_answer_does_not_match_the_schema() -> None:
    daemon = validator(as_object(closed(api_schema()), "the schema"), "/api/v1/daemon")
    assert not daemon.is_valid({"version": 1})
    document = as_object(await answer_of("/api/v1/daemon"), "")
    assert daemon.is_valid(document)
    assert not daemon.is_valid({**document, "colour": "red"})


def test_every_document_has_a_schema() -> None:
    ours = {path for path, route in ROUTES.items() if "output" in route.parameters and path.startswith("/api/")}
    paths = find_object(api_schema(), "paths")
    assert ours - {path.partition("?")[0] for path in paths} == {"/api/v1/schema"}
    assert PACKAGES


async def test_the_socket_serves_the_schema() -> None:
    answer = await make_handler(CannedInspector())(Request("GET", "/api/v1/schema", {}, {}, b""))
    assert isinstance(answer, Response)
    assert decode_json(answer.body, max_bytes=10_000_000, what="schema") == api_schema()


def test_the_schema_is_deterministic() -> None:
    assert api_schema() == api_schema()
