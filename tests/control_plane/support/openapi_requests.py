"""Requests made from OpenAPI documents, for every operation that the control plane declares, with valid and unusual arguments.

All choices come from a ``random.Random``, so a seed always results in the same run. Most values fit their schema. A few are
missing, null, far too big or of another type, and a few bodies are not documents at all.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list, find_object, find_str
from wharfinger.httpd.messages import Request

_NAMES: Final = ("a", "b", "default", "kubernetes", "system-node-critical", "kube-system", "A_b", "..", "x" * 300)
_WORDS: Final = (
    "",
    "a",
    "default",
    "1",
    "-1",
    "50%",
    "100m",
    "true",
    "é",
    "a=b",
    "!a",
    "x" * 70,
    "2026-01-01T00:00:00Z",
)
ODD: Final[tuple[JsonValue, ...]] = (
    None,
    True,
    -1,
    0,
    2**63,
    1.5,
    "",
    "x",
    [],
    {},
    [None],
    {"a": None},
    [[]],
    {"": {}},
)
_ACCEPTS: Final = (
    *["application/json"] * 14,
    "application/yaml",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "text/html",
)
_RAW_BODIES: Final = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b"{}",
    b'{"metadata": {"name": "a"}, "metadata": 1}',
)
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json",
)
_POINTERS: Final = ("", "/metadata/labels/a", "/spec", "/metadata/name", "/a/0/-", "/spec/~1", "x")
_DEPTH: Final = 6


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path. ``body`` is the schema of the body, or {} if there is none."""

    method: str
    path: str
    parameters: tuple[JsonObject, ...]
    body: JsonObject
    schemas: JsonObject


def operations(document: JsonObject) -> Iterator[Operation]:
    """Yield every operation of an OpenAPI version 3 document."""
    schemas = find_object(document, "components", "schemas")
    for path, item in find_object(document, "paths").items():
        shared = find_list(item, "parameters")
        for method, operation in item.items() if isinstance(item, dict) else ():
            if method == "parameters":
                continue
            parameters = tuple(one for one in (*shared, *find_list(operation, "parameters")) if isinstance(one, dict))
            contents = find_object(operation, "requestBody", "content")
            body = next((find_object(content, "schema") for content in contents.values()), {})
            yield Operation(method.upper(), path, parameters, body, schemas)


def drawn(operation: Operation, draw: random.Random) -> Request:
    """Return a random request for an operation."""
    path, query = operation.path, dict[str, tuple[str, ...]]()
    for parameter in operation.parameters:
        name = find_str(parameter, "name")
        if parameter.get("in") == "path":
            path = path.replace(f"{{{name}}}", draw.choice(_NAMES[:3]) if draw.random() < 0.9 else draw.choice(_NAMES))
        elif draw.random() < 0.12:
            query[name] = (_argument(find_object(parameter, "schema"), name, draw),)
    headers = {"accept": draw.choice(_ACCEPTS), "user-agent": "fuzz/1"}
    body = b""
    if operation.method in {"POST", "PUT", "PATCH", "DELETE"} and draw.random() < (0.95 if operation.body else 0.1):
        body = _body(operation, headers, draw)
    return Request(operation.method, path, query, headers, body)


def _argument(schema: JsonObject, name: str, draw: random.Random) -> str:
    if draw.random() < 0.25:
        return draw.choice(_WORDS)
    known = {
        "dryRun": "All",
        "fieldValidation": draw.choice(("Strict", "Warn", "Ignore")),
        "propagationPolicy": draw.choice(("Orphan", "Background", "Foreground")),
        "resourceVersionMatch": draw.choice(("Exact", "NotOlderThan")),
        "labelSelector": draw.choice(("a=b", "a in (b,c)", "!x", "a notin (", "=")),
        "fieldSelector": draw.choice(("metadata.name=a", "spec.x=y", "a", "metadata.name!=b")),
        "fieldManager": "fuzz",
    }
    if name in known:
        return known[name]
    return {"integer": draw.choice(("0", "1", "2", "99999999999")), "boolean": draw.choice(("true", "false", "1"))}.get(
        find_str(schema, "type"), draw.choice(_WORDS)
    )


def _body(operation: Operation, headers: dict[str, str], draw: random.Random) -> bytes:
    if operation.method == "PATCH":
        headers["content-type"] = draw.choice(_PATCHES)
        if headers["content-type"] == _PATCHES[0]:
            return encode_json([_json_patch(draw) for _ in range(draw.randrange(3))])
        return encode_json(
            {"metadata": {"labels": {"a": draw.choice(ODD)}}, "spec": _odd(draw, 0), "status": _odd(draw, 0)}
        )
    headers["content-type"] = draw.choice(("application/json", "application/json", "application/yaml"))
    if draw.random() < 0.04:
        return draw.choice(_RAW_BODIES)
    value = _value(operation.body, operation.schemas, draw, 0)
    if isinstance(value, dict):
        value.pop("apiVersion", None)
        value.pop("kind", None)
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            value["metadata"] = {**metadata, "name": draw.choice(_NAMES[:3])}
            for name in ("namespace", "resourceVersion", "uid"):
                if draw.random() < 0.9:
                    find_object(value, "metadata").pop(name, None)
    return encode_json(value)


def _json_patch(draw: random.Random) -> JsonValue:
    operation = draw.choice(("add", "remove", "replace", "move", "copy", "test", "nosuch"))
    return {"op": operation, "path": draw.choice(_POINTERS), "from": draw.choice(_POINTERS), "value": _odd(draw, 0)}


def _odd(draw: random.Random, depth: int) -> JsonValue:
    if depth < 3 and draw.random() < 0.5:
        return {draw.choice(("a", "replicas", "template", "metadata", "spec")): _odd(draw, depth + 1)}
    return draw.choice(ODD)


def _value(schema: JsonObject, schemas: JsonObject, draw: random.Random, depth: int) -> JsonValue:
    """Return a random value, which usually fits the schema."""
    if depth and draw.random() < 0.02:
        return draw.choice(ODD)
    reference = find_str(schema, "$ref") or find_str(schema, "allOf", 0, "$ref")
    if reference:
        return _value(find_object(schemas, reference.rpartition("/")[2]), schemas, draw, depth)
    match find_str(schema, "type"):
        case "object" if depth <= _DEPTH:
            return _object(schema, schemas, draw, depth)
        case "array":
            items = find_object(schema, "items")
            return [_value(items, schemas, draw, depth + 1) for _ in range(draw.randrange(3) if depth < _DEPTH else 0)]
        case "integer":
            return draw.choice((0, 1, 2, 3, 80, 443, 65536, -1, 2**31))
        case "number":
            return draw.choice((0.5, 1, -3.25))
        case "boolean":
            return draw.random() < 0.5
        case "string":
            listed = [item for item in find_list(schema, "enum") if isinstance(item, str)]
            return draw.choice(listed) if listed and draw.random() < 0.8 else draw.choice(_WORDS)
        case _:
            return draw.choice(ODD) if depth > _DEPTH or draw.random() < 0.5 else draw.choice(_WORDS)


def _object(schema: JsonObject, schemas: JsonObject, draw: random.Random, depth: int) -> JsonObject:
    required = find_list(schema, "required")
    chance = draw.random() ** 2 if depth < 2 else 0.2
    found: JsonObject = {
        name: _value(item, schemas, draw, depth + 1)
        for name, item in find_object(schema, "properties").items()
        if isinstance(item, dict) and draw.random() < (0.97 if name in required else chance)
    }
    more = find(schema, "additionalProperties")
    if isinstance(more, dict):
        found |= {draw.choice(("a", "cpu", "storage", "x/y")): _value(more, schemas, draw, depth + 1)}
    return found
