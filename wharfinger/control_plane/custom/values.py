"""The validation of a value by its schema, with the errors and the wording of kube-openapi's ``validate``.

Every keyword is checked, even if the type is already wrong. Each message is reported once, in the order of discovery. If no
branch of ``anyOf`` or ``oneOf`` is valid, the errors of the branch with the most passed checks (``Found.held``) are reported.
Errors of an unchanged value are ignored (:class:`~wharfinger.control_plane.custom.correlation.Pair`).
"""

import json
import math
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.custom.correlation import Pair, equal
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.objects.string_formats import FORMATS, known_format
from wharfinger.control_plane.wire.field_errors import (
    invalid,
    not_supported,
    quoted,
    required,
    sorted_members,
    too_long,
    too_many,
    type_invalid,
)
from wharfinger.control_plane.wire.go_numbers import go_number, is_float, is_multiple, is_whole, native
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.patterns import matches

ROOT: Final = "<nil>"
"""The name that errors give to the whole value, which has no path."""
MAX_STEPS: Final = 1_000_000
"""The maximum number of steps for one object; each validation of one value by one schema or one branch of a schema is a step."""
_TYPE_OF: Final[dict[type, str]] = {dict: "object", list: "array", str: "string", bool: "boolean"}


@dataclass(slots=True)
class Found:
    """The errors so far, by their text (``problems``), and the number of passed checks (``held``)."""

    problems: dict[str, FieldError] = field(default_factory=dict)
    held: int = 0

    def add(self, text: str, error: FieldError) -> None:
        """Add an error, unless an error with this text was already added; ``text`` is kube-openapi's message."""
        self.problems.setdefault(text, error)

    def merge(self, other: "Found") -> None:
        """Add the errors and passed checks of another result."""
        for text, error in other.problems.items():
            self.problems.setdefault(text, error)
        self.held += other.held


class TooManyStepsError(Exception):
    """The validation of a value takes more than ``MAX_STEPS`` steps."""


_BRANCHES: Final = frozenset({*schemas.BRANCHES, "not"})


@dataclass(slots=True)
class Checker:
    """The validator of a value; ``base`` is the path of the value in its object, "" for the whole object.

    ``steps`` is the number of steps that are left. The methods raise TooManyStepsError if ``steps`` becomes negative.
    """

    base: str = ""
    steps: int = MAX_STEPS

    def errors(self, schema: JsonObject, value: JsonValue, pair: Pair | None = None) -> list[FieldError]:
        """Return all errors of a value."""
        return list(self.checked(schema, value, "", pair).problems.values())

    def checked(self, schema: JsonObject, value: JsonValue, path: str, pair: Pair | None) -> Found:
        """Validate the value at ``path``, which is relative to ``base``. If ``pair`` shows that the value is unchanged, drop
        its errors.
        """
        self.steps -= 1
        if self.steps < 0:
            raise TooManyStepsError(
                f"the validation of the object takes more than {MAX_STEPS} steps; make the object smaller or its schema simpler"
            )
        found = _judged(self, schema, value, path, pair)
        return Found(held=found.held) if found.problems and pair is not None and pair.same() else found

    def field(self, path: str) -> str:
        """Return the name of the field for an error at ``path``, which is relative to ``base``."""
        name = path.removeprefix(".")
        if not name:
            return self.base or ROOT
        return f"{self.base}.{name}" if self.base else name

    def unnamed(self, text: str) -> FieldError:
        """Return an error that is reported at ``base``, because kube-openapi gives it no path."""
        return invalid(self.base or ROOT, "", text)


def types_of(schema: JsonObject) -> tuple[str, ...]:
    """Return the types that a schema allows."""
    if schemas.flag(schema, schemas.INT_OR_STRING):
        return ("integer", "string")
    kind = schemas.text(schema, "type")
    return (kind,) if kind else ()


def _judged(checker: Checker, schema: JsonObject, value: JsonValue, path: str, pair: Pair | None) -> Found:
    found = Found()
    value = native(value)
    types = types_of(schema)
    form = known_format(types, schemas.text(schema, "format"))
    if value is None:
        if types and "null" not in types and not schemas.flag(schema, "nullable"):
            _wrong_type(checker, found, path, ",".join(types), "null")
        _enum(checker, found, schema, value, path)
        return found
    if types or form:
        found.held += _type(checker, found, types, form, value, path) + 1
    _branches(checker, found, schema, value, path)
    if isinstance(value, str):
        _string(checker, found, schema, value, path)
        _format(checker, found, form, value, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _number(checker, found, schema, types, form, value, path)
    if isinstance(value, list):
        _list(checker, found, schema, value, path, pair)
    _enum(checker, found, schema, value, path)
    if isinstance(value, dict):
        _object(checker, found, schema, value, path, pair)
    found.held += 2  # two passed checks, as in kube-openapi: one for the enum, and one for the schema itself
    return found


def _add_value_error(checker: Checker, found: Found, path: str, value: JsonValue, sentence: str) -> None:
    """Add an error that shows the value: ``spec.x in body should …``."""
    text = f"{path} in body {sentence}"
    found.add(text, invalid(checker.field(path), value, text))


def _wrong_type(checker: Checker, found: Found, path: str, wanted: str, shown: str) -> None:
    text = f"{path} in body must be of type {wanted}: {quoted(shown)}"
    found.add(text, type_invalid(checker.field(path), shown, text))


def _type(checker: Checker, found: Found, types: tuple[str, ...], form: str, value: JsonValue, path: str) -> int:
    """Check the type, and return the number of passed checks: 1 or 0."""
    kind = _TYPE_OF.get(type(value)) or ("number" if is_float(value) else "integer")
    own_form = {"integer": "int64", "number": "float64"}.get(kind, "")
    fits = kind in types or (kind == "integer" and "number" in types)
    fits = fits or (is_float(value) and "integer" in types and is_whole(value))
    textual = isinstance(value, str | list)
    if form and not textual and not fits and own_form != form:
        _wrong_type(checker, found, path, form, own_form)
        return 0
    if form and textual and not {"number", "integer"} & set(types):
        return 1
    if not fits:
        _wrong_type(checker, found, path, ",".join(types), kind)
        return 0
    return 1


def _branches(checker: Checker, found: Found, schema: JsonObject, value: JsonValue, path: str) -> None:
    """Check ``anyOf``, ``oneOf``, ``allOf`` and ``not``, in this order. Errors of unchanged values are not dropped here."""
    found.held += 2  # for all branches together
    if _BRANCHES.isdisjoint(schema):
        return
    _any_of(checker, found, schema, value, path)
    _one_of(checker, found, schema, value, path)
    wanted = schemas.branches(schema, "allOf")
    held = 0
    for branch in wanted:
        result = checker.checked(branch, value, path, None)
        held += not result.problems
        found.merge(result)
    if held != len(wanted):
        text = f"{quoted(path)} must validate all the schemas (allOf){'' if held else '. None validated'}"
        found.add(text, checker.unnamed(text))
    refused = schemas.child(schema, "not")
    if refused is not None and not checker.checked(refused, value, path, None).problems:
        text = f"{quoted(path)} must not validate the schema (not)"
        found.add(text, checker.unnamed(text))


def _any_of(checker: Checker, found: Found, schema: JsonObject, value: JsonValue, path: str) -> None:
    best: Found | None = None
    for branch in schemas.branches(schema, "anyOf"):
        result = checker.checked(branch, value, path, None)
        if not result.problems:
            found.merge(result)
            return
        if best is None or result.held > best.held:
            best = result
    if best is not None:
        text = f"{quoted(path)} must validate at least one schema (anyOf)"
        found.add(text, checker.unnamed(text))
        found.merge(best)


def _one_of(checker: Checker, found: Found, schema: JsonObject, value: JsonValue, path: str) -> None:
    best: Found | None = None
    held: list[Found] = []
    wanted = schemas.branches(schema, "oneOf")
    for branch in wanted:
        result = checker.checked(branch, value, path, None)
        if not result.problems:
            held.append(result)
            best = None
        elif not held and (best is None or result.held > best.held):
            best = result
    if not wanted:
        return
    if len(held) == 1:
        found.merge(held[0])
        return
    why = f"Found {len(held)} valid alternatives" if held else "Found none valid"
    text = f"{quoted(path)} must validate one and only one schema (oneOf). {why}"
    found.add(text, checker.unnamed(text))
    if best is not None:
        found.merge(best)


def _string(checker: Checker, found: Found, schema: JsonObject, value: str, path: str) -> None:
    """Check length and pattern, and add only the first error."""
    most, least = schemas.whole(schema, "maxLength"), schemas.whole(schema, "minLength")
    pattern = schemas.text(schema, "pattern")
    found.held += 1
    if most is not None and len(value) > most:
        found.add(f"{path} in body should be at most {most} chars long", too_long(checker.field(path), most))
    elif least is not None and len(value) < least:
        _add_value_error(checker, found, path, value, f"should be at least {least} chars long")
    elif pattern and not matches(pattern, value):
        _add_value_error(checker, found, path, value, f"should match '{pattern}'")


def _format(checker: Checker, found: Found, form: str, value: str, path: str) -> None:
    check = FORMATS.get(form.replace("-", "")) if form else None
    if check is None:
        return
    found.held += 1
    if not check(value):
        _wrong_type(checker, found, path, form, value)


def _range_problem(value: float, types: tuple[str, ...], form: str, what: str, path: str) -> str:
    """Return the error if the type or the format cannot hold a number, or ""; ``what`` names the number in the error."""
    if types == ("integer",):
        low, high = (-(2**31), 2**31) if form == "int32" else (-(2**63), 2**63)
        if not math.isfinite(value) or value != math.trunc(value) or not low <= value < high:
            how = f"with format {form}" if form else "(default format)"
            return f"{what} value must be of type integer {how} in {path}"
    elif types == ("number",) and form == "float" and abs(value) > 3.4028235677973366e38:
        return f"{what} value must be of type number with format float in {path}"
    return ""


def _number(
    checker: Checker, found: Found, schema: JsonObject, types: tuple[str, ...], form: str, value: float, path: str
) -> None:
    unfit = _range_problem(value, types, form, "Checked", path)
    if unfit:
        found.add(unfit, checker.unnamed(unfit))
    for keyword, what in (
        ("multipleOf", "MultipleOf"),
        ("minimum", "Minimum boundary"),
        ("maximum", "Maximum boundary"),
    ):
        bound = schemas.number(schema, keyword)
        if bound is None:
            continue
        unfit = _range_problem(bound, types, form, what, path)
        if unfit:
            found.add(unfit, checker.unnamed(unfit))
        as_int = not unfit and not is_float(value)
        limit: float = int(bound) if as_int else bound
        shown = value if as_int or not unfit else float(value)
        _bounded(checker, found, schema, keyword, limit, shown, path)
    found.held += 2


def _bounded(
    checker: Checker, found: Found, schema: JsonObject, keyword: str, limit: float, number: float, path: str
) -> None:
    shown = go_number(number)
    said = go_number(limit)
    sentence = ""
    if keyword == "multipleOf":
        if limit <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {said}"
            found.add(text, invalid(checker.field(path), limit, text))
        elif not is_multiple(number, limit):
            sentence = f"should be a multiple of {said}"
    elif keyword == "minimum":
        exclusive = schemas.flag(schema, "exclusiveMinimum")
        if number < limit or (exclusive and number == limit):
            sentence = f"should be greater than{'' if exclusive else ' or equal to'} {said}"
    else:
        exclusive = schemas.flag(schema, "exclusiveMaximum")
        if number > limit or (exclusive and number == limit):
            sentence = f"should be less than{'' if exclusive else ' or equal to'} {said}"
    if sentence:
        text = f"{path} in body {sentence}"
        found.add(text, FieldError(checker.field(path), "FieldValueInvalid", f"Invalid value: {shown}: {text}"))


def _list(
    checker: Checker, found: Found, schema: JsonObject, value: list[JsonValue], path: str, pair: Pair | None
) -> None:
    items = schemas.items(schema)
    for index, item in enumerate(value if items is not None else ()):
        was = None if pair is None else pair.item(index)
        found.merge(checker.checked(items or {}, item, f"{path}[{index}]", was))
    least, most = schemas.whole(schema, "minItems"), schemas.whole(schema, "maxItems")
    if least is not None and len(value) < least:
        _add_value_error(checker, found, path, len(value), f"should have at least {least} items")
    if most is not None and len(value) > most:
        found.add(f"{path} in body should have at most {most} items", too_many(checker.field(path), len(value), most))
    if schemas.flag(schema, "uniqueItems") and any(
        equal(item, other) for index, item in enumerate(value) for other in value[:index]
    ):
        _add_value_error(checker, found, path, "", "shouldn't contain duplicates")
    found.held += 2


def _object(
    checker: Checker, found: Found, schema: JsonObject, value: JsonObject, path: str, pair: Pair | None
) -> None:
    least, most = schemas.whole(schema, "minProperties"), schemas.whole(schema, "maxProperties")
    if least is not None and len(value) < least:
        _add_value_error(checker, found, path, len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        text = f"{path} in body should have at most {most} properties"
        found.add(text, too_many(checker.field(path), len(value), most))
    declared = schemas.child(schema, "properties") or {}
    others = sorted(name for name in value if name not in declared) if schemas.has_additional(schema) else []
    additional = schemas.additional(schema)
    for name in others:
        if additional is not None:
            was = None if pair is None else _member(pair, path, name)
            found.merge(checker.checked(additional, value[name], f"{path}.{name}", was))
        elif schema.get("additionalProperties") is False:
            text = f"{path}.{name} in body is a forbidden property"
            found.add(text, invalid(checker.field(path), name, text))
    for name in sorted(declared.keys() & value.keys()):
        inner = declared[name]
        if isinstance(inner, dict):
            was = None if pair is None else _member(pair, path, name)
            found.merge(checker.checked(inner, value[name], f"{path}.{name}" if path else name, was))
    for name in schemas.strings(schema, "required"):
        if name not in value:
            found.add(f"{path}.{name} in body is required", required(checker.field(f"{path}.{name}")))
    found.held += 1


def _member(pair: Pair, path: str, name: str) -> Pair | None:
    """Return the pair of a member; ``apiVersion`` and ``kind`` have no pair, so their errors are always reported."""
    return None if not path and name in {"apiVersion", "kind"} else pair.member(name)


def _enum(checker: Checker, found: Found, schema: JsonObject, value: JsonValue, path: str) -> None:
    allowed = schemas.values(schema, "enum")
    if not allowed or any(item is not None and _same(value, native(item)) for item in allowed):
        return
    said = [
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        for item in allowed
    ]
    found.add(
        f"{path} in body should be one of {allowed}", not_supported(checker.field(path), sorted_members(value), said)
    )


def _same(value: JsonValue, allowed: JsonValue) -> bool:
    """Return whether a value equals an allowed value. As in Go, a number is first converted to the type of the allowed
    number.
    """
    numbers = [isinstance(item, int | float) and not isinstance(item, bool) for item in (value, allowed)]
    if isinstance(value, int | float) and all(numbers):
        converted = math.trunc(value) if isinstance(allowed, int) and math.isfinite(value) else value
        return converted == allowed
    return equal(value, allowed)
