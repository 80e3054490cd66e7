"""jsonschema with keywords that cannot hang it, for :mod:`~wharfinger.formats.schemas.explain`.

jsonschema itself matches patterns with a backtracking engine, compares every item of a list with every other item, puts whole
values into messages, and computes in floating point. With the keywords of this module, jsonschema-rs (the deciding engine) checks
patterns and formats. Comparisons and multiples are exact. Messages contain no values. All work is counted against a budget. The
message of an error about a missing or an unknown property is only the property's name.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import isfinite
from typing import Final, Protocol, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import create

from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json
from wharfinger.formats.schemas.formats import format_checker
from wharfinger.formats.schemas.patterns import matcher
from wharfinger.formats.schemas.work import Work


class Budget(FormatChecker):
    """The remaining work of one validation.

    jsonschema gets the budget in place of a format checker, because it makes its format checker available to every keyword.
    """

    def __init__(self, most: int) -> None:
        super().__init__(formats=())
        self.work = Work(most)


def explaining_validator(schema: JsonObject, work: int) -> Validator:
    """Return a validator for a single validation. The validated value must be a result of `quiet`, and jsonschema-rs must have
    compiled ``schema`` before.
    The validator's iterators raise WorkError when more than ``work`` keywords, members and items have been checked.
    """
    return _VALIDATOR(schema, format_checker=Budget(work))


class _QuietObject(dict[str, JsonValue]):
    """An object with a short ``repr``, because jsonschema puts the ``repr`` of values into messages that nobody reads."""

    def __repr__(self) -> str:
        return "{…}"


class _QuietList(list[JsonValue]):
    """A list with a short ``repr``."""

    def __repr__(self) -> str:
        return "[…]"


def quiet(value: JsonValue) -> JsonValue:
    """Return an equal copy of the value, whose containers have a short ``repr``."""
    if isinstance(value, dict):
        return _QuietObject({name: quiet(item) for name, item in value.items()})
    if isinstance(value, list):
        return _QuietList(map(quiet, value))
    return value


class _Descending(Protocol):
    """The validator's methods that a keyword's function uses."""

    @property
    def format_checker(self) -> Budget: ...

    def descend(
        self, instance: object, schema: JsonValue, path: str | int | None = None
    ) -> Iterator[ValidationError]: ...


_Keyword: TypeAlias = Callable[[_Descending, JsonValue, object, Mapping[str, JsonValue]], Iterator[ValidationError]]


def _required(
    _: _Descending, required: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if isinstance(required, list) and isinstance(instance, dict):
        yield from (ValidationError(name) for name in required if isinstance(name, str) and name not in instance)


def _additional_properties(
    validator: _Descending, allowed: JsonValue, instance: object, schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    declared, by_pattern = schema.get("properties"), schema.get("patternProperties")
    for name, item in instance.items():
        if isinstance(declared, dict) and name in declared:
            continue
        if isinstance(by_pattern, dict) and any(matcher(pattern).is_valid(name) for pattern in by_pattern):
            continue
        if allowed is False:
            yield ValidationError(name)
        else:
            yield from validator.descend(item, allowed, path=name)


def _pattern_properties(
    validator: _Descending, by_pattern: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if isinstance(by_pattern, dict) and isinstance(instance, dict):
        for pattern, inner in by_pattern.items():
            for name, item in instance.items():
                if matcher(pattern).is_valid(name):
                    yield from validator.descend(item, inner, path=name)


def _pattern(
    _: _Descending, pattern: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if isinstance(pattern, str) and isinstance(instance, str) and not matcher(pattern).is_valid(instance):
        yield ValidationError("pattern")


def _format(
    _: _Descending, name: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if isinstance(name, str) and isinstance(instance, str) and not format_checker(name).is_valid(instance):
        yield ValidationError("format")


def _unique_items(
    _: _Descending, wanted: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list) and len({canonical_json(item) for item in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _multiple_of(
    _: _Descending, step: JsonValue, instance: object, _schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float) or not isinstance(step, int | float):
        return
    if isinstance(instance, float) and not isfinite(instance):
        return
    if _exact(instance) % _exact(step):
        yield ValidationError("multipleOf")


def _exact(number: float) -> Fraction:
    """Return the number as it was written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


_KEYWORDS: Final[dict[str, _Keyword]] = {
    "required": _required,
    "additionalProperties": _additional_properties,
    "patternProperties": _pattern_properties,
    "pattern": _pattern,
    "format": _format,
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
}


_BRANCH: Final = 6
"""The factor by which anyOf and oneOf cost more than other keywords."""
_FRACTION: Final = 6


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    each = _BRANCH if name in {"anyOf", "oneOf"} else 1
    once = _FRACTION if name == "multipleOf" else 1

    def run(
        validator: _Descending, wanted: JsonValue, instance: object, schema: Mapping[str, JsonValue]
    ) -> Iterator[ValidationError]:
        sizes = (len(part) for part in (wanted, instance) if isinstance(part, dict | list))
        validator.format_checker.work.spend(once + each * sum(sizes))
        yield from keyword(validator, wanted, instance, schema)

    return run


_VALIDATOR: Final = create(
    Draft202012Validator.META_SCHEMA,
    {name: _counted(name, keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_KEYWORDS}.items()},
    type_checker=Draft202012Validator.TYPE_CHECKER,
)
