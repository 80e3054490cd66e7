"""What a schema does to values besides judging them: fill in defaults, leave out what is unknown, point at secrets.

The rules are those of Kubernetes' structural schemas (apiextensions-apiserver, ``defaulting`` and ``pruning``): they follow
``properties``, ``additionalProperties`` and ``items``, and never look into ``allOf``, ``anyOf``, ``oneOf`` and ``not``, whose
branches may not apply. Values come back new; nothing in them is shared with the argument or the schema.
"""

from typing import Final

from wharfinger.formats.json_value import MAX_DEPTH, JsonObject, JsonValue, ShapeError
from wharfinger.formats.schema_document import (
    ValuePath,
    alternatives,
    is_nullable,
    item_schema,
    properties,
    types,
)

MAX_NODES: Final = 500_000
"""JSON values that defaults may make of a value: a default in every item of a long list multiplies."""

_OBJECT_META: Final = frozenset({"apiVersion", "kind", "metadata"})


def defaulted(value: JsonValue, schema: JsonObject) -> JsonValue:
    """The value with the defaults of an expanded schema where it has nothing.

    A default fills a missing property, and takes the place of a null where the schema is not nullable (in lists and under
    additionalProperties too); it is then filled in itself. A null property that its type does not allow and that has no
    default is left out, as Kubernetes prunes it. Defaults of what is inside an absent object do not make it appear.
    Raises ShapeError beyond MAX_NODES or MAX_DEPTH.
    """
    return _Defaulting().value(value, schema, 0)


class _Copying:
    """Copies values, and counts what it makes."""

    def __init__(self) -> None:
        self.nodes = 0

    def count(self, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ShapeError(f"with its defaults the value has more than {MAX_NODES} parts")
        if depth > MAX_DEPTH:
            raise ShapeError(f"the value is nested deeper than {MAX_DEPTH} levels")

    def copy(self, value: JsonValue, depth: int) -> JsonValue:
        self.count(depth)
        if isinstance(value, dict):
            return {name: self.copy(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [self.copy(item, depth + 1) for item in value]
        return value


class _Defaulting(_Copying):
    def value(self, value: JsonValue, schema: JsonObject | None, depth: int) -> JsonValue:
        if schema is None:
            return self.copy(value, depth)
        if value is None and not is_nullable(schema):
            value = schema.get("default")
        self.count(depth)
        if isinstance(value, dict):
            return self.members(value, schema, depth + 1)
        if isinstance(value, list):
            return [self.value(item, item_schema(schema, index), depth + 1) for index, item in enumerate(value)]
        return value

    def members(self, value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
        declared = properties(schema)
        others = schema.get("additionalProperties")
        result: JsonObject = {}
        for name, item in value.items():
            inner = declared.get(name)
            if item is None and inner is not None and _is_no_value(inner):
                continue
            if inner is None and isinstance(others, dict):
                inner = others
            result[name] = self.value(item, inner, depth)
        for name, inner in declared.items():
            if name not in value and inner.get("default") is not None:
                result[name] = self.value(inner["default"], inner, depth)
        return result


def _is_no_value(schema: JsonObject) -> bool:
    """Whether null is refused and there is nothing to put in its place."""
    return bool(types(schema)) and not is_nullable(schema) and schema.get("default") is None


def pruned(value: JsonValue, schema: JsonObject) -> JsonValue:
    """The value without the properties that an expanded schema does not declare.

    Under ``x-kubernetes-preserve-unknown-fields: true`` unknown ones stay, but what is declared there is pruned again.
    ``additionalProperties: true`` keeps what is in it (Kubernetes would empty the objects there). Raises ShapeError for a
    value nested beyond MAX_DEPTH.
    """
    return _Pruning().value(value, schema, 0)


class _Pruning(_Copying):
    def value(self, value: JsonValue, schema: JsonObject | None, depth: int) -> JsonValue:
        """What is left of it; of a value nothing is declared about, the shell."""
        self.count(depth)
        keeps = schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True
        if isinstance(value, dict):
            return self.members(value, schema or {}, depth + 1, keeps=keeps)
        if isinstance(value, list):
            return self.items(value, schema or {}, depth + 1, keeps=keeps)
        return value

    def members(self, value: JsonObject, schema: JsonObject, depth: int, *, keeps: bool) -> JsonObject:
        declared = properties(schema)
        others = schema.get("additionalProperties")
        embedded = schema.get("x-kubernetes-embedded-resource") is True
        result: JsonObject = {}
        for name, item in value.items():
            if embedded and name in _OBJECT_META:
                result[name] = self.copy(item, depth)
            elif name in declared:
                result[name] = self.value(item, declared[name], depth)
            elif isinstance(others, dict):
                result[name] = self.value(item, others, depth)
            elif keeps or others is True or "patternProperties" in schema:
                result[name] = self.copy(item, depth)
        return result

    def items(self, value: list[JsonValue], schema: JsonObject, depth: int, *, keeps: bool) -> list[JsonValue]:
        result: list[JsonValue] = []
        for index, item in enumerate(value):
            inner = item_schema(schema, index)
            if keeps:
                inner = {**(inner or {}), "x-kubernetes-preserve-unknown-fields": True}
            result.append(self.value(item, inner, depth))
        return result


def write_only_paths(value: JsonValue, schema: JsonObject) -> tuple[ValuePath, ...]:
    """Where the value has something that the schema says is ``writeOnly: true``, in the value's order.

    Here the branches of allOf, anyOf and oneOf count, and a patternProperties counts for every name: a secret too many is
    better than one too few. Nothing below a path is listed again.
    """
    found: dict[ValuePath, None] = {}
    _find_write_only(value, (schema,), (), found)
    return tuple(found)


def has_write_only(schema: JsonValue) -> bool:
    """Whether anything in an expanded schema is ``writeOnly``, so that looking for it in values is worth while."""
    if isinstance(schema, dict):
        return schema.get("writeOnly") is True or any(map(has_write_only, schema.values()))
    return isinstance(schema, list) and any(map(has_write_only, schema))


def _find_write_only(
    value: JsonValue, schemas: tuple[JsonObject, ...], path: ValuePath, found: dict[ValuePath, None]
) -> None:
    applying = _with_alternatives(schemas)
    if value is None or not applying:
        return
    if any(schema.get("writeOnly") is True for schema in applying):
        found[path] = None
    elif isinstance(value, dict):
        for name, item in value.items():
            inner = tuple(inner for schema in applying for inner in _schemas_of_member(schema, name))
            _find_write_only(item, inner, (*path, name), found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            of_item = (item_schema(schema, index) for schema in applying)
            _find_write_only(item, tuple(inner for inner in of_item if inner is not None), (*path, index), found)


def _with_alternatives(schemas: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    waiting, result = list(schemas), []
    while waiting:
        schema = waiting.pop()
        result.append(schema)
        waiting.extend(alternatives(schema))
    return tuple(result)


def _schemas_of_member(schema: JsonObject, name: str) -> list[JsonObject]:
    declared = properties(schema)
    result = list(properties(schema, "patternProperties").values())
    others = schema.get("additionalProperties")
    if name in declared:
        result.append(declared[name])
    elif isinstance(others, dict):
        result.append(others)
    return result
