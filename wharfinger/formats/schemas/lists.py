"""The requirements of Kubernetes' extensions of JSON Schema: lists that are sets or maps, and embedded resources. Pure.

=====================================  =============================================================================
extension                              requirement
=====================================  =============================================================================
``x-kubernetes-list-type: set``        no two items are equal
``x-kubernetes-list-type: map``        no two items have equal values under ``x-kubernetes-list-map-keys``; a key that an
                                       item lacks counts as null
``x-kubernetes-embedded-resource``     ``apiVersion`` and ``kind`` exist and are text, and ``metadata`` is an object
=====================================  =============================================================================

:mod:`~wharfinger.formats.schemas.structural` walks over the value and its schema.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.formats.schemas.document import (
    SchemaError,
    ValuePath,
    item_key,
    map_keys,
    path_text,
    properties,
)
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.structural import parts
from wharfinger.formats.schemas.work import Work, WorkError

LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
MAX_CHECKED: Final = 200_000
"""The largest number of parts of a value that are checked; items of sets and maps count twice. A check of so many parts takes
less than half a second.
"""


def has_list_types(schema: JsonObject, *, what: str) -> bool:
    """Return whether an expanded schema has sets, maps or embedded objects.

    Raises SchemaError if one of them is declared wrongly.
    """
    return _has(schema, (), what)


def _has(schema: JsonObject, path: ValuePath, what: str) -> bool:
    kind, keys = schema.get(LIST_TYPE), schema.get(MAP_KEYS)
    if kind is not None and kind not in ("atomic", "set", "map"):
        raise SchemaError(f"{what}: {path_text((*path, LIST_TYPE))}: is not one of atomic, set, map")
    if kind == "map" and not (isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys)):
        raise SchemaError(f"{what}: {path_text((*path, MAP_KEYS))}: required for a list of type map; name its keys")
    found = kind in ("set", "map") or schema.get(EMBEDDED) is True
    for name, inner in properties(schema).items():
        found = _has(inner, (*path, "properties", name), what) or found
    for keyword in ("items", "additionalProperties"):
        below = schema.get(keyword)
        for one in below if isinstance(below, list) else [below]:
            if isinstance(one, dict):
                found = _has(one, (*path, keyword), what) or found
    return found


def list_problems(value: JsonValue, schema: JsonObject, limit: int) -> tuple[Problem, ...]:
    """Return a problem for each part of a value that violates the declared type of a list or of an embedded object, at most
    ``limit`` problems. Raises ShapeError for a value without a JSON form.
    """
    search = _Search(limit)
    try:
        search.visit(value, schema, ())
    except WorkError:
        return (
            *search.found[: limit - 1],
            Problem("", f"has more than {MAX_CHECKED} parts to be checked for duplicates"),
        )
    return tuple(search.found)


class _Search:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found: list[Problem] = []
        self.work = Work(MAX_CHECKED)

    def add(self, path: ValuePath, message: str) -> None:
        if len(self.found) < self.limit:
            self.found.append(Problem(path_text(path), message))

    def visit(self, value: JsonValue, schema: JsonObject, path: ValuePath) -> None:
        self.work.spend(1)
        if len(self.found) >= self.limit:
            return
        if isinstance(value, dict) and schema.get(EMBEDDED) is True:
            self.resource(value, path)
        elif isinstance(value, list):
            self.items(value, schema, path)
        for step, part, inner in parts(schema, value):
            if inner is not None:
                self.visit(part, inner, (*path, step))

    def resource(self, value: JsonObject, path: ValuePath) -> None:
        for name in ("apiVersion", "kind"):
            if not (isinstance(value.get(name), str) and value[name]):
                self.add((*path, name), "is required in an embedded resource")
        if not isinstance(value.get("metadata"), dict):
            self.add((*path, "metadata"), "is required in an embedded resource")

    def items(self, items: list[JsonValue], schema: JsonObject, path: ValuePath) -> None:
        keys = map_keys(schema)
        if not keys and schema.get(LIST_TYPE) != "set":
            return
        self.work.spend(len(items))
        seen: dict[bytes, int] = {}
        for index, item in enumerate(items):
            key = item_key(item, keys) if keys else canonical_json(item)
            if key is None:
                continue
            first = seen.setdefault(key, index)
            if first != index:
                alike = f"has the same {', '.join(keys)} as" if keys else "is equal to"
                self.add((*path, index), f"{alike} item {first}; each may occur only once")
