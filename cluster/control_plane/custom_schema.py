"""What the schema of a custom resource says of its objects: which defaults they get, and what is wrong with them.

jsonschema-rs decides and jsonschema explains (:mod:`wharfinger.formats.openapi_schema`); what was found is said here as the
kube-apiserver says it (apiextensions-apiserver, ``validation.ValidateCustomResource``), since clients and people know
those words. A value that a write leaves as it was is not held against it, so that an object which an older schema let in
can still lose its finalizers (KEP-4008, ratcheting). Rules in CEL (``x-kubernetes-validations``) are not evaluated.

A schema that cannot be compiled keeps nobody out: objects of its kind are stored unchecked, and the definition's condition
``NonStructuralSchema`` says so.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from jsonschema import ValidationError

from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.formats.json_value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    canonical_json,
    encode_json,
    find,
)
from wharfinger.formats.openapi_schema import Schema, SchemaError, compile_schema
from wharfinger.formats.schema_conversion import Converted, to_json_schema
from wharfinger.formats.schema_document import ValuePath
from wharfinger.formats.schema_explain import MAX_WORK
from wharfinger.formats.schema_keywords import WorkError, explaining_validator, quiet

MAX_ERRORS: Final = 20
_MOST_FOUND: Final = 10 * MAX_ERRORS
"""Found before they are sorted and the first are said."""
_MOST_COMPARED: Final = 32 * 1024 * 1024
"""Bytes of values that are compared with those that were there; values inside each other count each time."""
_MOST_COMPLETE: Final = 20_000
"""States of objects that are known to lack no default."""
_SHOWN_CHARS: Final = 300
_ROOT: Final = "<nil>"
"""How the kube-apiserver calls the object itself."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    schema: Schema
    converted: Converted
    has_defaults: bool


class CustomSchema:
    """The schema of one version of a custom kind; compiled when it is first asked."""

    def __init__(self, document: JsonObject, *, what: str) -> None:
        self._document = document
        self._what = what
        self._complete: OrderedDict[tuple[JsonValue, JsonValue], None] = OrderedDict()
        """States of objects, by uid and resourceVersion, that lack no default; JSON values of stored ones are texts."""

    @property
    def problem(self) -> str:
        """Why objects are not checked; "" where they are."""
        return self._compiled if isinstance(self._compiled, str) else ""

    def defaulted(self, obj: JsonObject) -> JsonObject:
        """The object with its defaults, and without nulls that the schema does not allow. Raises ShapeError."""
        if isinstance(self._compiled, str):
            return obj
        return as_object(self._compiled.schema.defaulted(obj), "the object")

    def completed(self, obj: JsonObject) -> JsonObject:
        """A stored object with the defaults that came into the schema after it was stored."""
        if isinstance(self._compiled, str) or not self._compiled.has_defaults:
            return obj
        state = (find(obj, "metadata", "uid"), find(obj, "metadata", "resourceVersion"))
        if state in self._complete:  # most objects are read many times as they were written
            return obj
        try:
            completed = self.defaulted(obj)
        except ShapeError:
            return obj  # it was small enough when it was written; the next write says so
        if completed == obj:
            self.is_complete(obj)
        return completed

    def is_complete(self, obj: JsonObject) -> None:
        """Told of a stored object that has its defaults: nobody needs to look for them in this state of it."""
        state = (find(obj, "metadata", "uid"), find(obj, "metadata", "resourceVersion"))
        if None not in state:
            self._complete[state] = None
            while len(self._complete) > _MOST_COMPLETE:
                self._complete.popitem(last=False)

    def errors(self, obj: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
        """What is wrong with an object, except for what is as it was in ``old``; at most MAX_ERRORS."""
        compiled = self._compiled
        if isinstance(compiled, str):
            return []
        problems = compiled.schema.problems(obj, limit=1)
        if not problems:
            return []
        unchanged = _Unchanged(obj, old)
        found: list[FieldError] = []
        looked_at_all = seen = False
        errors = cast(
            "Iterable[ValidationError]",
            explaining_validator(compiled.converted.schema, MAX_WORK).iter_errors(quiet(obj)),
        )
        with suppress(WorkError, RecursionError):  # what was found by then is said
            for error in errors:
                seen = True
                if not unchanged.at(tuple(error.absolute_path)):
                    found.append(_said(error, compiled.converted))
                if len(found) >= _MOST_FOUND:
                    break
            looked_at_all = True
        if not found and not (seen and looked_at_all):
            # Nothing new was found, and there may be something: an object is let in for what is known of it.
            return [FieldError(problem.path or _ROOT, *_invalid(problem.message)) for problem in problems]
        return sorted(found, key=lambda error: error.field)[:MAX_ERRORS]

    @cached_property
    def _compiled(self) -> _Compiled | str:
        try:
            schema = compile_schema(self._document, what=self._what)
            return _Compiled(schema, to_json_schema(schema.document, what=self._what), _has_defaults(schema.document))
        except SchemaError as error:
            return str(error)


class _Unchanged:
    """Which values of an object are as they were in ``old``; each is compared once, and all of them within a budget."""

    def __init__(self, obj: JsonObject, old: JsonObject | None) -> None:
        self._obj = obj
        self._old = old
        self._known: dict[ValuePath, bool] = {}
        self._left = _MOST_COMPARED

    def at(self, path: ValuePath) -> bool:
        """Whether the value there is as it was; an absent one was not, nor was one when the budget is spent."""
        if path not in self._known:
            self._known[path] = self._left > 0 and self._compared(path)
        return self._known[path]

    def _compared(self, path: ValuePath) -> bool:
        if not path or self._old is None:
            return False
        before, holder = find(self._old, *path), find(self._old, *path[:-1])
        if before is None and not (isinstance(holder, dict) and path[-1] in holder):
            return False
        one, other = canonical_json(before), canonical_json(find(self._obj, *path))  # in Python True is 1
        self._left -= len(one) + len(other)
        return one == other


def _has_defaults(schema: JsonValue) -> bool:
    """Whether "default" is said anywhere; a property of that name counts too, which costs time and nothing else."""
    if isinstance(schema, dict):
        return "default" in schema or any(map(_has_defaults, schema.values()))
    return isinstance(schema, list) and any(map(_has_defaults, schema))


def _invalid(text: str) -> tuple[str, str]:
    return "FieldValueInvalid", f"Invalid value: {text}"


def _said(error: ValidationError, converted: Converted) -> FieldError:
    """An error of jsonschema in the kube-apiserver's words."""
    path, keyword = tuple(error.absolute_path), str(error.validator)
    expected, value = cast("JsonValue", error.validator_value), cast("JsonValue", error.instance)
    if keyword == "required":  # the message is the name (schema_keywords)
        return FieldError(_field((*path, error.message)), "FieldValueRequired", "Required value")
    field = _field(path)
    if keyword == "type":
        wanted = ",".join(
            str(name) for name in (expected if isinstance(expected, list) else [expected]) if name != "null"
        )
        found = f'"{_type(value)}"'
        return FieldError(
            field, "FieldValueTypeInvalid", f"Invalid value: {found}: {field} in body must be of type {wanted}: {found}"
        )
    if keyword == "format":
        return FieldError(
            field,
            "FieldValueTypeInvalid",
            f"Invalid value: {_shown(value)}: {field} in body must be of type {expected}: {_shown(value)}",
        )
    if keyword == "enum" and isinstance(expected, list):
        supported = ", ".join(map(_shown, expected))
        return FieldError(
            field, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {supported}"
        )
    if keyword == "maxLength":
        return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {expected} bytes")
    if keyword in {"maxItems", "maxProperties"} and isinstance(value, list | dict):
        return FieldError(field, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {expected} items")
    if keyword == "pattern":
        expected = converted.patterns.get(str(expected), expected)
    sentence = _SENTENCES[keyword](expected) if keyword in _SENTENCES else "does not fit the schema"
    shown = '""' if keyword in {"anyOf", "oneOf", "not"} else _shown(value)
    return FieldError(field, *_invalid(f"{shown}: {field} in body {sentence}"))


_SENTENCES: Final[dict[str, Callable[[JsonValue], str]]] = {
    "pattern": lambda expected: f"should match '{expected}'",
    "minLength": lambda expected: f"should be at least {expected} chars long",
    "minimum": lambda expected: f"should be greater than or equal to {expected}",
    "maximum": lambda expected: f"should be less than or equal to {expected}",
    "exclusiveMinimum": lambda expected: f"should be greater than {expected}",
    "exclusiveMaximum": lambda expected: f"should be less than {expected}",
    "multipleOf": lambda expected: f"should be a multiple of {expected}",
    "minItems": lambda expected: f"should have at least {expected} items",
    "minProperties": lambda expected: f"should have at least {expected} properties",
    "uniqueItems": lambda _: "shouldn't contain duplicates",
    "anyOf": lambda _: "must validate at least one schema (anyOf)",
    "oneOf": lambda _: "must validate one and only one schema (oneOf)",
    "not": lambda _: "must not validate the schema (not)",
}


def _field(path: ValuePath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or _ROOT


def _type(value: JsonValue) -> str:
    """The name of a value's type in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names: dict[type, str] = {dict: "object", list: "array", str: "string", int: "integer"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "number")


def _shown(value: JsonValue) -> str:
    text = encode_json(value).decode()
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
