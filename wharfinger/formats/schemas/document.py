"""An OpenAPI v3 schema as a document: read once, bounded, with references replaced and its shape checked.

All code that works on schemas (conversion, defaults, transformations) takes the result of :func:`expanded` and reads it without
further checks. In the result every sub-schema is an object (or, under ``additionalProperties`` and ``additionalItems``, a
boolean), and every list of schemas is a list. As in Go, keywords that are null are removed, except ``default`` and ``const``.
No ``$ref`` is left.

References are local (``#/definitions/x``). Members beside a ``$ref`` override the target's members of the same names. A
reference that leads back to itself is refused. Without recursion, checking a value costs at most the size of the schema times
the size of the value. The module ``cost`` limits this product. This module limits the number of alternatives (in ``allOf``,
``anyOf`` and ``oneOf``), because they make the product grow.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, canonical_json, type_name

MAX_NODES: Final = 200_000
"""The most JSON values in a schema with its references replaced. The largest known schemas have a tenth of this number."""
MAX_BRANCHES: Final = 256
"""The largest number of schemas in one allOf, anyOf or oneOf."""
MAX_ALL_BRANCHES: Final = 5_000
"""The largest number of schemas in all allOf, anyOf and oneOf of a document together."""

ValuePath: TypeAlias = tuple[str | int, ...]
"""The path of a value in a document: the keys and indexes that lead from the root to the value."""

_MAPS: Final = frozenset({"properties", "patternProperties"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_OR_BOOLEAN: Final = frozenset({"additionalProperties", "additionalItems"})
_DEFINITIONS: Final = frozenset({"definitions", "$defs", "components"})
_LONGEST_KEY: Final = 100
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$")


class SchemaError(FormatError):
    """A schema itself is wrong; the message contains the place."""


def path_text(path: ValuePath) -> str:
    """Return a path as ``sets[2].name``; the root is ``""``.

    Keys that are not plain words are quoted: ``labels["app/name"]``.
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step and _PLAIN.issuperset(step) and len(step) <= _LONGEST_KEY:
            text += f".{step}" if text else step
        else:
            cut = step if len(step) <= _LONGEST_KEY else step[:_LONGEST_KEY] + "…"
            text += f"[{json.dumps(cut, ensure_ascii=not cut.isprintable())}]"
    return text


def expanded(document: JsonValue, *, what: str) -> JsonObject:
    """Return a copy of the schema with its shape checked, its ``$ref`` replaced and its null keywords removed.

    ``what`` names the schema in errors. A schema that is already expanded is returned as an equal copy.

    Raises SchemaError for values that a schema cannot have, for nesting beyond MAX_DEPTH, and for a reference that is not local,
    has no target or leads to itself. With its references replaced, a schema may have at most MAX_NODES values, MAX_BRANCHES
    alternatives in one list, and MAX_ALL_BRANCHES in all lists.
    """
    if not isinstance(document, dict):
        raise SchemaError(f"{what}: a schema is an object, found {type_name(document)}")
    return _Expansion(document, what).schema(document, (), ())


def properties(schema: JsonObject, keyword: str = "properties") -> dict[str, JsonObject]:
    """Return the schemas by name under a keyword of an expanded schema, such as ``properties``."""
    found = schema.get(keyword)
    return {name: item for name, item in found.items() if isinstance(item, dict)} if isinstance(found, dict) else {}


def alternatives(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield the schemas of an expanded schema's allOf, anyOf and oneOf."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        found = schema.get(keyword)
        if isinstance(found, list):
            yield from (item for item in found if isinstance(item, dict))


def item_schema(schema: JsonObject, index: int) -> JsonObject | None:
    """Return the schema of a list's item; None if it is not defined."""
    items = schema.get("items")
    if isinstance(items, list):
        items = items[index] if index < len(items) else schema.get("additionalItems")
    return items if isinstance(items, dict) else None


def map_keys(schema: JsonObject) -> tuple[str, ...]:
    """Return the keys that identify items of a map list (``x-kubernetes-list-type: map``); () for any other list."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(keys, list):
        return ()
    return tuple(key for key in keys if isinstance(key, str))


def item_key(item: JsonValue, keys: tuple[str, ...]) -> bytes | None:
    """Return the values that an item has for the keys, as canonical JSON.

    Returns None if there are no keys, or if the item is not an object.

    A missing key is the same as null. Raises ShapeError for a value without a JSON form.
    """
    return canonical_json([item.get(key) for key in keys]) if keys and isinstance(item, dict) else None


def by_keys(items: JsonValue, keys: tuple[str, ...]) -> dict[bytes, JsonValue]:
    """Return the items of a map list by their keys. If several items have the same keys, only the first is returned.

    Raises ShapeError, as `item_key` does.
    """
    found: dict[bytes, JsonValue] = {}
    for item in items if isinstance(items, list) and keys else []:
        key = item_key(item, keys)
        if key is not None:
            found.setdefault(key, item)
    return found


def types(schema: JsonObject) -> tuple[str, ...]:
    """Return the types an expanded schema allows; () for any."""
    found = schema.get("type")
    if found == "int-or-string" or schema.get("x-kubernetes-int-or-string") is True:
        return ("integer", "string")
    if schema.get("format") == "int-or-string":
        return ("integer", "string")
    if isinstance(found, list):
        return tuple(item for item in found if isinstance(item, str))
    return (found,) if isinstance(found, str) else ()


def is_nullable(schema: JsonObject) -> bool:
    """Return whether the schema itself allows null."""
    return schema.get("nullable") is True or "null" in types(schema)


@dataclass(slots=True)
class _Expansion:
    root: JsonObject
    what: str
    nodes: int = 0
    branches: int = 0

    def error(self, path: ValuePath, why: str) -> SchemaError:
        where = path_text(path)
        return SchemaError(f"{self.what}: {where}: {why}" if where else f"{self.what}: {why}")

    def count(self, path: ValuePath) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.error(path[:4], f"the schema has more than {MAX_NODES} values after its references are replaced")
        if len(path) >= MAX_DEPTH:
            raise self.error(path[:4], f"nested deeper than {MAX_DEPTH} levels")

    def count_branches(self, count: int, path: ValuePath) -> None:
        self.branches += count
        if count > MAX_BRANCHES:
            raise self.error(path, f"has {count} alternatives; the limit is {MAX_BRANCHES}")
        if self.branches > MAX_ALL_BRANCHES:
            raise self.error(
                path, f"the schema has more than {MAX_ALL_BRANCHES} alternatives in allOf, anyOf and oneOf"
            )

    def schema(self, value: JsonValue, path: ValuePath, via: tuple[str, ...]) -> JsonObject:
        self.count(path)
        if value is None or value is True:
            return {}
        if value is False:
            return {"not": {}}
        if not isinstance(value, dict):
            raise self.error(path, f"a schema is an object, found {type_name(value)}")
        if value.get("$ref") is not None:
            return self.referred(value, path, via)
        return {
            name: self.member(name, item, (*path, name), via)
            for name, item in value.items()
            if not (name in _DEFINITIONS or (item is None and name not in {"default", "const"}))
        }

    def member(self, name: str, value: JsonValue, path: ValuePath, via: tuple[str, ...]) -> JsonValue:
        self.count(path)
        if name in _MAPS:
            if not isinstance(value, dict):
                raise self.error(path, f"expected an object of schemas, found {type_name(value)}")
            return {key: self.schema(item, (*path, key), via) for key, item in value.items()}
        if name in _LISTS or (name == "items" and isinstance(value, list)):
            if not isinstance(value, list) or not value:
                raise self.error(path, f"expected a list of schemas, found {type_name(value) if value else 'none'}")
            if name in _LISTS:
                self.count_branches(len(value), path)
            return [self.schema(item, (*path, index), via) for index, item in enumerate(value)]
        if name in _OR_BOOLEAN and isinstance(value, bool):
            return value
        if name in _OR_BOOLEAN or name in {"not", "items"}:
            return self.schema(value, path, via)
        return self.copy(value, path)

    def copy(self, value: JsonValue, path: ValuePath) -> JsonValue:
        self.count(path)
        if isinstance(value, dict):
            return {key: self.copy(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.copy(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def referred(self, value: JsonObject, path: ValuePath, via: tuple[str, ...]) -> JsonObject:
        reference = value["$ref"]
        here = (*path, "$ref")
        if not isinstance(reference, str):
            raise self.error(here, f"a reference is a string, found {type_name(reference)}")
        shown = reference if len(reference) <= _LONGEST_KEY else reference[:_LONGEST_KEY] + "…"
        if not reference.startswith("#"):
            raise self.error(
                here, f"{shown!r} is not in this document: only references that start with #/ are followed"
            )
        if reference in via:
            raise self.error(here, f"{shown!r} leads back to itself: schemas that contain themselves are not supported")
        target = self.schema(self.pointed(reference, here, shown), path, (*via, reference))
        beside = self.schema({name: item for name, item in value.items() if name != "$ref"}, path, via)
        return {**target, **beside}

    def pointed(self, reference: str, here: ValuePath, shown: str) -> JsonValue:
        found: JsonValue = self.root
        for name in pointer_steps(unquote(reference[1:])):
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(found):
                found = found[int(name[:9])]
            else:
                raise self.error(here, f"{shown!r} leads nowhere: there is no {name[:_LONGEST_KEY]!r}")
        return found
