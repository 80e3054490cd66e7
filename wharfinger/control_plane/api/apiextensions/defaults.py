"""The validation of defaults in schemas: each default must satisfy its schema and all rules of the schema, and must not have
fields that would be pruned.

A default inside an object's ``metadata``, ``apiVersion`` or ``kind`` is validated as part of an object that contains it.
"""

from dataclasses import dataclass, replace

from wharfinger.control_plane.api.apiextensions.structure import conversion_problem, structure_errors
from wharfinger.control_plane.custom.cel_rules import BUDGET, RuleSet
from wharfinger.control_plane.custom.correlation import equal
from wharfinger.control_plane.custom.embedded_objects import coerced, embedded_errors
from wharfinger.control_plane.custom.pruning import pruned as pruned_value
from wharfinger.control_plane.custom.values import Checker
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import invalid, sorted_members
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

_META = frozenset({"metadata", "apiVersion", "kind"})


@dataclass(frozen=True, slots=True)
class _Around:
    """The object that contains a default: its schema, and the path from the object to the default.

    A step of the path is the name of a member, or None for an item of a list.
    """

    root: JsonObject
    way: tuple[str | None, ...] = ()
    in_meta: bool = False

    def step(self, name: str | None, *, in_meta: bool) -> "_Around":
        """Return a copy with a path that is one step longer: to the member ``name``, or to an item if ``name`` is None."""
        return replace(self, way=(*self.way, name), in_meta=in_meta)

    def built(self, value: JsonValue) -> JsonValue:
        """Return an object that has the default ``value`` at the path."""
        for name in reversed(self.way):
            value = [value] if name is None else {name: value}
        named: JsonObject = {"apiVersion": "validation/v1", "kind": "Validation"}
        return {**named, **value} if isinstance(value, dict) else value


def default_errors(schema: JsonObject, path: str, *, pruned: bool) -> list[FieldError]:
    """Return the errors of the defaults of a schema; with ``pruned``, unknown fields in a default are errors."""
    return _Judge(pruned).errors(schema, path, _Around(schema), top=True)


def has_unpruned_defaults(schema: JsonObject) -> bool:
    """Return whether a structural schema has a default with fields that the schema does not declare."""
    if conversion_problem(schema) or structure_errors(schema, ""):
        return False
    return any(
        node.get("default") is not None and not equal(_pruned(node, node["default"], embedded=False), node["default"])
        for node in schemas.walked(schema)
    )


class _Judge:
    def __init__(self, pruned: bool) -> None:  # noqa: FBT001
        self._pruned = pruned
        self._budget = BUDGET

    def errors(self, schema: JsonObject, path: str, around: _Around, *, top: bool = False) -> list[FieldError]:
        """Return the errors of the defaults in a schema and in the schemas inside it; all of them share one evaluation budget."""
        embedded = top or schemas.flag(schema, schemas.EMBEDDED)
        if embedded:
            around = _Around(schema)
        errors: list[FieldError] = []
        if schema.get("default") is not None:
            errors += self._default(schema, f"{path}.default", around, embedded=embedded)
        items = schemas.items(schema)
        if items is not None and self._budget >= 0:
            errors += self.errors(items, f"{path}.items", around.step(None, in_meta=around.in_meta))
        for name, node in schemas.properties(schema).items():
            if self._budget < 0:
                break
            in_meta = around.in_meta or (embedded and name in _META)
            errors += self.errors(node, f"{path}.properties[{name}]", around.step(name, in_meta=in_meta))
        return errors

    def _default(self, schema: JsonObject, field: str, around: _Around, *, embedded: bool) -> list[FieldError]:
        value = schema["default"]
        errors: list[FieldError] = []
        if around.in_meta:
            whole = around.built(value)
            wrong = coerced(around.root, whole, root=True)
            said = [wrong] if wrong else embedded_errors(around.root, whole, root=True)
            if said:
                listed = str(said[0]) if len(said) == 1 else f"[{', '.join(map(str, said))}]"
                return [invalid(field, sorted_members(value), f"must result in valid metadata: {listed}")]
        else:
            if self._pruned and not equal(_pruned(schema, value, embedded=embedded), value):
                errors.append(invalid(field, sorted_members(value), "must not have unknown fields"))
            wrong = coerced(schema, value, field, root=embedded)
            found = [wrong] if wrong else embedded_errors(schema, value, field, root=embedded)
            if found:
                return errors + found
        found = Checker(field).errors(schema, value)
        return errors + (found or self._rule_errors(schema, value, field, root=embedded))

    def _rule_errors(self, schema: JsonObject, value: JsonValue, field: str, *, root: bool) -> list[FieldError]:
        """Return the errors that the rules of a schema find in its default.

        The default is checked as an unchanged value and, if that finds no error, as a new value.
        """
        rules = RuleSet(schema, root=root)
        if not rules:
            return []
        first = rules.errors(value, value, self._budget, path=field)
        outcome = rules.errors(value, None, self._budget, path=field) if not first.errors else first
        self._budget = min(first.left, outcome.left)
        return outcome.errors


def _pruned(schema: JsonObject, value: JsonValue, *, embedded: bool) -> JsonValue:
    return pruned_value(schema, value, root=embedded)[0]
