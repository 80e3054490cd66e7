"""The conversion of OpenAPI v3 (and Kubernetes' structural) schemas to JSON Schema 2020-12, which validators know.

These keywords differ: ``nullable`` (null is accepted whatever ``enum``, ``anyOf`` and other keywords require, as in
Kubernetes), ``exclusiveMinimum: true`` beside ``minimum``, int-or-string in its three spellings, ``format`` on numbers (it
becomes bounds), lists of ``items``, and patterns (see the module ``patterns``). Only keywords that validate are converted.
Annotations and ``x-…`` are left out, and so are keywords such as ``$id`` and ``$dynamicRef``, which JSON Schema knows but OpenAPI
does not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, type_name
from wharfinger.formats.schemas.document import SchemaError, ValuePath, path_text, types
from wharfinger.formats.schemas.formats import FORMATS, NUMBER_BOUNDS
from wharfinger.formats.schemas.patterns import PatternError, read_pattern

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
MAX_PATTERNS: Final = 256


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted schema. ``schema`` is JSON Schema 2020-12. ``patterns`` maps each pattern in it to the pattern that the
    author wrote.
    """

    schema: JsonObject
    patterns: dict[str, str]


def to_json_schema(document: JsonObject, *, what: str) -> Converted:
    """Convert an expanded schema. Raises SchemaError if a keyword has an invalid value."""
    conversion = _Conversion(what)
    schema = conversion.schema(document, ())
    return Converted(schema, conversion.patterns)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: JsonValue) -> bool:
    return _is_number(value) and isinstance(value, int | float) and value >= 0 and value == value // 1


def _is_list_of_strings(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_COPIED: Final[dict[str, tuple[Callable[[JsonValue], bool], str]]] = {
    "minLength": (_is_count, "a whole number from 0"),
    "maxLength": (_is_count, "a whole number from 0"),
    "minItems": (_is_count, "a whole number from 0"),
    "maxItems": (_is_count, "a whole number from 0"),
    "minProperties": (_is_count, "a whole number from 0"),
    "maxProperties": (_is_count, "a whole number from 0"),
    "multipleOf": (
        lambda value: isinstance(value, int | float) and _is_number(value) and value > 0,
        "a number above 0",
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "enum": (lambda value: isinstance(value, list) and bool(value), "a list of at least one value"),
    "const": (lambda _: True, ""),
}
_BOUNDS: Final = (("minimum", "exclusiveMinimum", max), ("maximum", "exclusiveMaximum", min))
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_NOT_FOR_NULL: Final = (*_LISTS, "not", "const")


@dataclass(slots=True)
class _Conversion:
    what: str
    patterns: dict[str, str] = field(default_factory=dict)

    def error(self, path: ValuePath, why: str) -> SchemaError:
        return SchemaError(f"{self.what}: {path_text(path)}: {why}")

    def schema(self, source: JsonObject, path: ValuePath) -> JsonObject:
        out: JsonObject = {}
        self.put_types(source, out, path)
        self.put_copied(source, out, path)
        self.put_bounds(source, out, path)
        self.put_strings(source, out, path)
        self.put_object(source, out, path)
        self.put_items(source, out, path)
        for keyword in _LISTS:
            found = source.get(keyword)
            if isinstance(found, list):
                out[keyword] = [self.sub(item, (*path, keyword, index)) for index, item in enumerate(found)]
        if "not" in source:
            out["not"] = self.sub(source["not"], (*path, "not"))
        nullable = source.get("nullable")
        if nullable is not None and not isinstance(nullable, bool):
            raise self.error((*path, "nullable"), f"expected true or false, found {type_name(nullable)}")
        return _accepting_null(out) if nullable else out

    def sub(self, value: JsonValue, path: ValuePath) -> JsonObject | bool:
        return value if isinstance(value, bool) else self.schema(value if isinstance(value, dict) else {}, path)

    def put_types(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        declared = source.get("type")
        named = declared if isinstance(declared, list) else [declared]
        for name in named if declared is not None and declared != "int-or-string" else ():
            if name not in TYPES:
                shown = repr(name) if isinstance(name, str) and len(name) < 100 else type_name(name)
                raise self.error((*path, "type"), f"{shown} is not a type; known: {', '.join(TYPES)}, int-or-string")
        allowed = types(source)
        if isinstance(declared, list) and not declared:
            raise self.error((*path, "type"), "the list is empty; name at least one type")
        if allowed:
            out["type"] = list(dict.fromkeys(allowed)) if len(allowed) > 1 else allowed[0]

    def put_copied(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        for keyword, (fits, expected) in _COPIED.items():
            if keyword not in source:
                continue
            value = source[keyword]
            if not fits(value):
                raise self.error((*path, keyword), f"expected {expected}, found {_shown(value)}")
            out[keyword] = int(value) if isinstance(value, float) and _is_count(value) else value

    def put_bounds(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        number = "integer" in types(source) or "number" in types(source)
        format_ = source.get("format")
        limits = NUMBER_BOUNDS.get(format_, (None, None)) if number and isinstance(format_, str) else (None, None)
        for (plain, exclusive, tighter), limit in zip(_BOUNDS, limits, strict=True):
            bound, strictly = source.get(plain), source.get(exclusive)
            if bound is not None and not _is_number(bound):
                raise self.error((*path, plain), f"expected a number, found {_shown(bound)}")
            if strictly is not None and not isinstance(strictly, bool | int | float):
                raise self.error((*path, exclusive), f"expected true, false or a number, found {_shown(strictly)}")
            if isinstance(strictly, bool):
                strictly = bound if strictly else None
                bound = None if strictly is not None else bound
            if limit is not None:
                bound = tighter(bound, limit) if isinstance(bound, int | float) else limit
            out |= {name: value for name, value in ((plain, bound), (exclusive, strictly)) if value is not None}

    def put_strings(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        pattern, format_ = source.get("pattern"), source.get("format")
        if pattern is not None:
            out["pattern"] = self.pattern(pattern, (*path, "pattern"))
        if format_ is not None and not isinstance(format_, str):
            raise self.error((*path, "format"), f"expected a string, found {type_name(format_)}")
        if format_ in FORMATS:
            out["format"] = format_

    def pattern(self, value: JsonValue, path: ValuePath) -> str:
        if not isinstance(value, str):
            raise self.error(path, f"expected a regular expression, found {type_name(value)}")
        try:
            translated = read_pattern(value)
        except PatternError as error:
            raise self.error(path, str(error)) from error
        self.patterns[translated] = value
        if len(self.patterns) > MAX_PATTERNS:
            raise self.error(path, f"more than {MAX_PATTERNS} different patterns")
        return translated

    def put_object(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        required = source.get("required")
        if required is not None:
            if not _is_list_of_strings(required):
                hint = ": a schema lists the names of its required properties" if isinstance(required, bool) else ""
                raise self.error((*path, "required"), f"expected a list of names, found {_shown(required)}{hint}")
            out["required"] = required
        declared = source.get("properties")
        if isinstance(declared, dict):
            out["properties"] = {name: self.sub(item, (*path, "properties", name)) for name, item in declared.items()}
        by_pattern = source.get("patternProperties")
        if isinstance(by_pattern, dict):
            here = (*path, "patternProperties")
            out["patternProperties"] = {
                self.pattern(name, (*here, name)): self.sub(item, (*here, name)) for name, item in by_pattern.items()
            }
        if "additionalProperties" in source:
            out["additionalProperties"] = self.sub(source["additionalProperties"], (*path, "additionalProperties"))

    def put_items(self, source: JsonObject, out: JsonObject, path: ValuePath) -> None:
        items = source.get("items")
        if isinstance(items, list):
            out["prefixItems"] = [self.sub(item, (*path, "items", index)) for index, item in enumerate(items)]
            if "additionalItems" in source:
                out["items"] = self.sub(source["additionalItems"], (*path, "additionalItems"))
        elif items is not None:
            out["items"] = self.sub(items, (*path, "items"))


def _accepting_null(schema: JsonObject) -> JsonObject:
    """Change the schema so that it accepts null, and return it.

    Most keywords do not apply to null. A keyword that applies to null is extended to accept null, or moved to a place where it
    does not apply to null.
    """
    allowed, values = schema.get("type"), schema.get("enum")
    if allowed is not None:
        schema["type"] = list(dict.fromkeys([*(allowed if isinstance(allowed, list) else [allowed]), "null"]))
    if isinstance(values, list) and None not in values:
        schema["enum"] = [*values, None]
    moved: JsonObject = {keyword: schema.pop(keyword) for keyword in _NOT_FOR_NULL if keyword in schema}
    return {**schema, "if": {"type": "null"}, "else": moved} if moved else schema


def _shown(value: JsonValue) -> str:
    return (
        str(value) if _is_number(value) and isinstance(value, int | float) and abs(value) < 1e15 else type_name(value)
    )
