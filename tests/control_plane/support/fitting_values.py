"""Values that fit an OpenAPI schema. Values of fields such as ``image`` also satisfy rules that the schema does not contain."""

import random
import re
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_object, find_str

_BY_FORMAT: Final[dict[str, JsonValue]] = {
    "date-time": "2026-01-01T00:00:00Z",
    "byte": "YQ==",
    "int-or-string": 1,
    "double": 0.5,
}
_BY_TYPE: Final[dict[str, JsonValue]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "2026-01-01T00:00:00Z",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "2026-01-01T00:00:00.000000Z",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": 1,
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"f:spec": {}},
}
_BY_NAME: Final[tuple[tuple[str, JsonValue], ...]] = (
    (r".*[iI]mage", "x:1"),
    (r".*IP|ip|address", "10.0.0.9"),
    (r".*(CIDR|cidr)", "10.1.0.0/16"),
    (r".*[pP]ath", "/a"),
    (r"url|externalURI", "https://a.example.com/x"),
    (r"schedule", "* * * * *"),
    (r"apiVersion", "v1"),
    (r"kind", "Pod"),
    (r"apiGroup", "rbac.authorization.k8s.io"),
    (r"uid|.*UID", "00000000-0000-0000-0000-000000000001"),
    (r"expression|.*Expression", "true"),
    (r"key|topologyKey", "kubernetes.io/hostname"),
    (r"operator", "Exists"),
    (r"resourceVersion", ""),
)
_QUOTED: Final = re.compile(r'"([A-Z][A-Za-z]{2,40})"')
_DEPTH: Final = 5


def fitting(name: str, schema: JsonObject, schemas: JsonObject, draw: random.Random, depth: int = 0) -> JsonValue:
    """Return a value that fits a field with this name and schema."""
    reference = find_str(schema, "$ref") or find_str(schema, "allOf", 0, "$ref")
    if reference:
        type_ = reference.rpartition("/")[2]
        if type_ in _BY_TYPE:
            return _BY_TYPE[type_]
        return fitting(name, find_object(schemas, type_), schemas, draw, depth)
    if find_str(schema, "format") in _BY_FORMAT:
        return _BY_FORMAT[find_str(schema, "format")]
    match find_str(schema, "type"):
        case "object":
            return _object(schema, schemas, draw, depth)
        case "array":
            return [fitting(name, find_object(schema, "items"), schemas, draw, depth + 1)] if depth < _DEPTH else []
        case "integer" | "number":
            return draw.choice((1, 1, 2, 80))
        case "boolean":
            return draw.random() < 0.5
        case "string":
            return _string(name, schema, draw)
        case _:
            return {}


def _string(name: str, schema: JsonObject, draw: random.Random) -> str:
    listed = [item for item in find_list(schema, "enum") if isinstance(item, str) and item]
    listed = listed or _QUOTED.findall(find_str(schema, "description"))
    if listed:
        return draw.choice(listed)
    value = next((value for pattern, value in _BY_NAME if re.fullmatch(pattern, name)), "a")
    return value if isinstance(value, str) else "a"


def _object(schema: JsonObject, schemas: JsonObject, draw: random.Random, depth: int) -> JsonObject:
    required = find_list(schema, "required")
    found = {
        name: fitting(name, item, schemas, draw, depth + 1)
        for name, item in find_object(schema, "properties").items()
        if isinstance(item, dict) and (name in required or (depth < _DEPTH and draw.random() < 0.08))
    }
    more = find_object(schema, "additionalProperties")
    return {**found, "a": fitting("a", more, schemas, draw, depth + 1)} if more and depth < _DEPTH else found


def altered(value: JsonValue, schema: JsonObject, schemas: JsonObject, draw: random.Random) -> JsonValue:
    """Return the value with at most one change: a field gets a new value that fits the schema, or a field is removed."""
    reference = find_str(schema, "$ref") or find_str(schema, "allOf", 0, "$ref")
    if reference:
        schema = find_object(schemas, reference.rpartition("/")[2])
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        changed = altered(value[place], find_object(schema, "items"), schemas, draw)
        return [*value[:place], changed, *value[place + 1 :]]
    if not isinstance(value, dict):
        return value
    properties = {name: item for name, item in find_object(schema, "properties").items() if isinstance(item, dict)}
    deeper = [
        name for name in value if name in properties and isinstance(value[name], dict | list) and name != "status"
    ]
    if deeper and draw.random() < 0.8:
        name = draw.choice(deeper)
        return {**value, name: altered(value[name], properties[name], schemas, draw)}
    if value and draw.random() < 0.15:
        gone = draw.choice(list(value))
        return {name: item for name, item in value.items() if name != gone}
    if not properties:
        return value
    name = draw.choice(list(properties))
    return {**value, name: fitting(name, properties[name], schemas, draw)}
