"""The validation of schemas beyond their structure (``structure``): types, list types, keys, and unsupported fields.

Each schema is validated with the restrictions that the schemas around it impose (:class:`Place`). Errors of CEL rules come
last. The rules of a schema are only compiled if neither this schema nor a schema inside it has other errors.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.control_plane.api.apiextensions.cel_rules import RuleScope, compiled_errors, rule_errors
from wharfinger.control_plane.api.apiextensions.lists import key_errors, list_errors
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import indexed
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_UNSUPPORTED: Final = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)
_SAID_EMPTY: Final = frozenset({"dependencies", "$ref"})


@dataclass(frozen=True, slots=True)
class Place:
    """The restrictions on a schema that the schemas around it impose."""

    no_defaults: str = ""
    """The reason why defaults are not allowed here, or ""."""
    in_meta: bool = False
    uncorrelated: str | None = None
    """The path of the ancestor that makes it impossible to correlate values of this schema with their old values; None if it is
    possible.
    """


@dataclass(frozen=True, slots=True)
class Leniency:
    """The checks that an update skips. ``rule_costs`` is skipped because the schema is unchanged, the other checks because the
    old definition violated them already.
    """

    types: bool = False
    set_items: bool = False
    list_keys: bool = False
    rule_costs: bool = False


@dataclass(slots=True)
class SchemaErrors:
    """The errors found in a schema and in its rules."""

    plain: list[FieldError] = field(default_factory=list)
    rules: list[FieldError] = field(default_factory=list)

    def merge(self, other: "SchemaErrors") -> None:
        """Add all errors of ``other`` to this collection."""
        self.plain += other.plain
        self.rules += other.rules


def schema_errors(
    schema: JsonObject, path: str, place: Place, lenient: Leniency, scope: RuleScope | None, *, root: bool = False
) -> SchemaErrors:
    """Return all errors of a schema and of the schemas inside it; without a ``scope``, rules are not compiled."""
    found = SchemaErrors(_node_errors(schema, path, place, lenient))
    if schemas.flag(schema, "uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.plain.append(forbidden(f"{path}.uniqueItems", why))

    def inner(node: JsonObject, where: str, at: Place, inside: RuleScope | None) -> None:
        found.merge(schema_errors(node, where, at, lenient, inside))

    _members(schema, path, place, scope, root, found, inner)
    for name in ("not", "allOf", "oneOf", "anyOf"):
        single = schemas.child(schema, name)
        if single is not None and name == "not":
            inner(single, f"{path}.not", place, None)
        for index, node in enumerate(schemas.branches(schema, name)):
            inner(node, indexed(f"{path}.{name}", index), place, None)
    for name, node in schemas.children(schema, "definitions").items():
        inner(node, f"{path}.definitions[{name}]", place, None)
    _items(schema, path, place, scope, inner)
    for name, node in schemas.children(schema, "dependencies").items():
        inner(node, f"{path}.dependencies[{name}]", place, None)
    _extensions(schema, path, lenient, found)
    found.plain += rule_errors(schema, path)
    if schemas.rules(schema) and not found.plain and scope is not None:
        found.rules += compiled_errors(scope, path, place.uncorrelated, suppressed=lenient.rule_costs)
    return found


_Inner = Callable[[JsonObject, str, Place, RuleScope | None], None]


def _node_errors(schema: JsonObject, path: str, place: Place, lenient: Leniency) -> list[FieldError]:
    """Return the errors of a schema, without those of the schemas inside it."""
    errors: list[FieldError] = []
    kind = schemas.text(schema, "type")
    if kind and kind not in TYPES and not lenient.types:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    if schema.get("default") is not None and place.no_defaults:
        errors.append(forbidden(f"{path}.default", f"must not be set {place.no_defaults}".strip()))
    for name, why in _UNSUPPORTED:
        if schema.get(name) is not None and (schema[name] not in ("", {}) or name in _SAID_EMPTY):
            errors.append(forbidden(f"{path}.{name}", why))
    if kind == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if schemas.values(schema, "items"):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_meta and schemas.flag(schema, schemas.EMBEDDED):
        errors.append(forbidden(f"{path}.{schemas.EMBEDDED}", "must not be used inside of resource meta"))
    return errors


def _members(
    schema: JsonObject,
    path: str,
    place: Place,
    scope: RuleScope | None,
    root: bool,  # noqa: FBT001 - passed on
    found: SchemaErrors,
    inner: _Inner,
) -> None:
    declared, additional = schemas.properties(schema), schemas.additional(schema)
    if schemas.has_additional(schema):
        if declared and schema.get("additionalProperties") is not True:
            why = "additionalProperties and properties are mutual exclusive"
            found.plain.append(forbidden(f"{path}.additionalProperties", why))
        if additional is not None:
            why = "inside additionalProperties applying to object metadata"
            at = replace(place, no_defaults=why) if place.in_meta else place
            inner(additional, f"{path}.additionalProperties", at, scope and scope.child(additional))
    correlated = schema.get(schemas.MAP_TYPE) in (None, "granular", "atomic")
    for name, node in declared.items():
        at = place if correlated else _forbidding_old(place, path)
        if name in _META and (root or schemas.flag(schema, schemas.EMBEDDED)):
            at = replace(at, in_meta=True)
            at = replace(at, no_defaults=f"in top-level {name}") if root else at
        inner(node, f"{path}.properties[{name}]", at, scope and scope.child(node))


def _forbidding_old(place: Place, path: str) -> Place:
    return place if place.uncorrelated is not None else replace(place, uncorrelated=path)


def _items(schema: JsonObject, path: str, place: Place, scope: RuleScope | None, inner: _Inner) -> None:
    at = place if schemas.list_type(schema) == "map" else _forbidding_old(place, path)
    items = schemas.items(schema)
    if items is not None:
        inner(items, f"{path}.items", at, scope and scope.child(items))
    for index, node in enumerate(schemas.branches(schema, "items")):
        inner(node, indexed(f"{path}.items", index), at, scope and scope.child(node))


def _extensions(schema: JsonObject, path: str, lenient: Leniency, found: SchemaErrors) -> None:
    """Add the errors of the schema's ``x-kubernetes-…`` fields."""
    kind = schemas.text(schema, "type")
    if schema.get(schemas.PRESERVE) is False:
        found.plain.append(invalid(f"{path}.{schemas.PRESERVE}", False, "must be true or undefined"))  # noqa: FBT003
    map_type = schema.get(schemas.MAP_TYPE)
    if map_type is not None and kind != "object":
        why = "must be object if x-kubernetes-map-type is specified"
        found.plain.append(invalid(f"{path}.type", kind, why) if kind else required(f"{path}.type", why))
    if map_type is not None and map_type not in ("atomic", "granular"):
        found.plain.append(not_supported(f"{path}.{schemas.MAP_TYPE}", map_type, ("atomic", "granular")))
    found.plain += list_errors(schema, path, check_sets=not lenient.set_items)
    if not lenient.list_keys:
        found.plain += key_errors(schema, path)
