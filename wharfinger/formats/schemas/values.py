"""The operations of a schema on values besides validation: fill in defaults, remove unknown properties, find secrets.

Defaults and unknown properties are handled as in Kubernetes' structural schemas (the packages ``defaulting`` and ``pruning`` of
apiextensions-apiserver). :mod:`~wharfinger.formats.schemas.structural` walks over a value. Results are new values, which share
nothing with the argument or the schema.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError
from wharfinger.formats.schemas.document import ValuePath, alternatives, is_nullable, item_schema, properties, types
from wharfinger.formats.schemas.structural import members, parts
from wharfinger.formats.schemas.work import Work, WorkError

MAX_NODES: Final = 500_000
"""The most JSON values in a result. A limit is needed, because a default in every item of a long list can multiply the size."""
MAX_SEARCHED: Final = 500_000
"""The limit on the steps of one search for secrets. A search with this number of steps takes less than half a second."""

_OBJECT_META: Final = frozenset({"apiVersion", "kind", "metadata"})

_NOTHING: Final[JsonObject] = {}


def defaulted(value: JsonValue, schema: JsonObject) -> JsonValue:
    """Return the value with the defaults of an expanded schema for everything that the value lacks.

    A default fills a missing property, and replaces a null if the schema is not nullable (in lists and under
    additionalProperties too); then the defaults inside the filled-in value are filled in. A null property is removed if its
    type does not allow null and the property has no default, as in Kubernetes. Defaults inside an absent object do not create
    the object. Raises ShapeError beyond MAX_NODES or MAX_DEPTH.
    """
    return _Defaulting().value(value, schema, 0)


class _Copying:
    """A copier of values, which counts the values that it makes."""

    def __init__(self) -> None:
        self.nodes = 0
        self._declared: dict[int, _Declared] = {}

    def declared(self, schema: JsonObject) -> "_Declared":
        """Return the properties and the defaults of the schema, which are read once for all objects."""
        found = self._declared.get(id(schema))
        if found is None:
            declared = properties(schema)
            filled = {name: inner["default"] for name, inner in declared.items() if inner.get("default") is not None}
            found = self._declared[id(schema)] = _Declared(schema, declared, filled)
        return found

    def count(self, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ShapeError(f"the value has more than {MAX_NODES} parts after its defaults are filled in")
        if depth > MAX_DEPTH:
            raise ShapeError(f"the value is nested deeper than {MAX_DEPTH} levels")

    def copy(self, value: JsonValue, depth: int) -> JsonValue:
        self.count(depth)
        if isinstance(value, dict):
            return {name: self.copy(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [self.copy(item, depth + 1) for item in value]
        return value


@dataclass(frozen=True, slots=True)
class _Declared:
    """The properties of a schema, and their defaults.

    The key of such an entry in the cache is the ``id`` of the schema. The reference to the schema keeps the schema alive, so
    that no other schema gets the same ``id``.
    """

    schema: JsonObject
    properties: dict[str, JsonObject]
    defaults: dict[str, JsonValue]


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
            return [self.value(item, inner, depth + 1) for _, item, inner in parts(schema, value)]
        return value

    def members(self, value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
        known = self.declared(schema)
        result: JsonObject = {}
        for name, item, inner, _ in members(schema, value):
            if item is None and inner is not None and name in known.properties and _removes_null(inner):
                continue
            result[name] = self.value(item, inner, depth)
        for name, default in known.defaults.items():
            if name not in value:
                result[name] = self.value(default, known.properties[name], depth)
        return result


def _removes_null(schema: JsonObject) -> bool:
    """Return whether a null value is removed, because the schema does not allow null and has no default to replace it."""
    return bool(types(schema)) and not is_nullable(schema) and schema.get("default") is None


def pruned(value: JsonValue, schema: JsonObject) -> JsonValue:
    """Return the value without the properties that an expanded schema does not declare.

    Under ``x-kubernetes-preserve-unknown-fields: true`` unknown properties are kept, but unknown properties inside of declared
    properties are still removed. Values under ``additionalProperties: true`` are kept whole (Kubernetes would empty the objects
    there), and so are undeclared properties beside ``patternProperties``. Raises ShapeError for a value nested beyond MAX_DEPTH.
    """
    return _Pruning().value(value, schema, 0)


class _Pruning(_Copying):
    def __init__(self) -> None:
        super().__init__()
        self._keeping: dict[int, tuple[JsonObject, JsonObject]] = {}

    def value(self, value: JsonValue, schema: JsonObject | None, depth: int) -> JsonValue:
        """Return a value without its undeclared properties; an object without a schema becomes empty."""
        self.count(depth)
        keeps = schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True
        if isinstance(value, dict):
            return self.members(value, _NOTHING if schema is None else schema, depth + 1, keeps=keeps)
        if isinstance(value, list):
            return self.items(value, schema or {}, depth + 1, keeps=keeps)
        return value

    def members(self, value: JsonObject, schema: JsonObject, depth: int, *, keeps: bool) -> JsonObject:
        keeps = keeps or schema.get("additionalProperties") is True or "patternProperties" in schema
        embedded = schema.get("x-kubernetes-embedded-resource") is True
        result: JsonObject = {}
        for name, item, inner, _ in members(schema, value):
            if embedded and name in _OBJECT_META:
                result[name] = self.copy(item, depth)
            elif inner is not None:
                result[name] = self.value(item, inner, depth)
            elif keeps:
                result[name] = self.copy(item, depth)
        return result

    def items(self, value: list[JsonValue], schema: JsonObject, depth: int, *, keeps: bool) -> list[JsonValue]:
        result: list[JsonValue] = []
        for _, item, found in parts(schema, value):
            inner = self.keeping(found or _NOTHING) if keeps else found
            result.append(self.value(item, inner, depth))
        return result

    def keeping(self, schema: JsonObject) -> JsonObject:
        """Return the schema, changed to keep unknown properties."""
        found = self._keeping.get(id(schema))
        if found is None:
            found = schema, {**schema, "x-kubernetes-preserve-unknown-fields": True}
            self._keeping[id(schema)] = found
        return found[1]


def write_only_paths(value: JsonValue, schema: JsonObject) -> tuple[ValuePath, ...]:
    """Return the paths of parts that the schema marks with ``writeOnly: true``, in the value's order.

    The branches of allOf, anyOf and oneOf count, too, and patternProperties counts for every name, because it is better to hide
    too much than too little. Nothing below a path is listed again. If the search would take more than MAX_SEARCHED steps, the
    whole value counts as one secret: ``((),)``.
    """
    search = _SecretSearch(MAX_SEARCHED)
    try:
        search.search(value, search.applying([schema]), ())
    except WorkError:
        return ((),)
    return tuple(search.found)


def has_write_only(schema: JsonValue) -> bool:
    """Return whether anything in an expanded schema is ``writeOnly``, so that values have to be searched."""
    if isinstance(schema, dict):
        return schema.get("writeOnly") is True or any(map(has_write_only, schema.values()))
    return isinstance(schema, list) and any(map(has_write_only, schema))


@dataclass(slots=True)
class _Applying:
    """The schemas that apply to one place of a value, including alternatives.

    An instance also caches the instances for the parts inside that place. Places to which the same schemas apply (such as the
    items of a list) share one instance. ``listed`` is the length of the longest list of schemas under ``items``.
    """

    schemas: tuple[JsonObject, ...]
    is_secret: bool
    declared: frozenset[str]
    listed: int
    members: dict[str, "_Applying"] = field(default_factory=dict)
    others: "_Applying | None" = None
    items: dict[int, "_Applying"] = field(default_factory=dict)


class _SecretSearch:
    def __init__(self, most: int) -> None:
        self.work = Work(most)
        self.found: dict[ValuePath, None] = {}
        self.known: dict[tuple[int, ...], _Applying] = {}

    def search(self, value: JsonValue, applying: _Applying, path: ValuePath) -> None:
        if value is None or not applying.schemas:
            return
        self.work.spend(1)
        if applying.is_secret:
            self.found[path] = None
        elif isinstance(value, dict):
            for name, item in value.items():
                self.search(item, self.of_member(applying, name), (*path, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.search(item, self.of_item(applying, index), (*path, index))

    def applying(self, schemas: list[JsonObject]) -> _Applying:
        """Return the `_Applying` of these schemas and their alternatives; the same object for equal calls."""
        self.work.spend(1 + len(schemas))
        key = tuple(map(id, schemas))
        there = self.known.get(key)
        if there is not None:
            return there
        each: dict[int, JsonObject] = {}
        waiting = schemas[::-1]
        while waiting:
            schema = waiting.pop()
            if id(schema) not in each:
                each[id(schema)] = schema
                branches = list(alternatives(schema))
                self.work.spend(1 + len(branches) + len(properties(schema)))
                waiting += branches
        found = tuple(each.values())
        names = frozenset(name for schema in found for name in properties(schema))
        lists = (schema.get("items") for schema in found)
        listed = max((len(items) for items in lists if isinstance(items, list)), default=0)
        made = _Applying(found, any(schema.get("writeOnly") is True for schema in found), names, listed)
        self.known[key] = made
        return made

    def of_member(self, applying: _Applying, name: str) -> _Applying:
        if name not in applying.declared:
            if applying.others is None:
                applying.others = self.applying(self.member_schemas(applying, name))
            return applying.others
        if name not in applying.members:
            applying.members[name] = self.applying(self.member_schemas(applying, name))
        return applying.members[name]

    def member_schemas(self, applying: _Applying, name: str) -> list[JsonObject]:
        self.work.spend(len(applying.schemas))
        result: list[JsonObject] = []
        for schema in applying.schemas:
            declared, others = schema.get("properties"), schema.get("additionalProperties")
            result += properties(schema, "patternProperties").values()
            inner = declared[name] if isinstance(declared, dict) and name in declared else others
            if isinstance(inner, dict):
                result.append(inner)
        return result

    def of_item(self, applying: _Applying, index: int) -> _Applying:
        place = min(index, applying.listed)  # after the longest list of schemas all items have the same schemas
        if place not in applying.items:
            self.work.spend(len(applying.schemas))
            of_item = (item_schema(schema, place) for schema in applying.schemas)
            applying.items[place] = self.applying([inner for inner in of_item if inner is not None])
        return applying.items[place]
