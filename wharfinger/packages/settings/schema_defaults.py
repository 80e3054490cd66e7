"""The defaults in a package's schemas, checked against the schemas of their properties. Pure.

The daemon fills in defaults before it checks settings. So if a default is refused by its own schema, all settings that use this
default are invalid. Without this check, only users would notice that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.formats.schemas.openapi_schema import Schema, compile_schema
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.definition import Definition

MAX_PROBLEMS: Final = 20
"""The largest number of problems of one schema that are reported."""


@dataclass(frozen=True, slots=True)
class DefaultProblem:
    """A default that its schema refuses. ``steps`` are the keys that lead to the default in the schema's document;
    ``problem`` has the path of the property.
    """

    steps: tuple[str, ...]
    problem: Problem


def refused_defaults(definition: Definition) -> tuple[tuple[DefaultProblem, ...], tuple[DefaultProblem, ...]]:
    """Return the defaults that the schemas themselves refuse: first the problems of the settings schema, then the further
    problems of the values schema.
    """
    settings, values = (
        () if schema is None else schema_default_problems(schema)
        for schema in (definition.settings_schema, definition.values_schema)
    )
    return settings, tuple(each for each in values if each not in settings)


def schema_default_problems(schema: Schema) -> tuple[DefaultProblem, ...]:
    """Return the problems of the defaults in a schema, at most MAX_PROBLEMS."""
    return tuple(islice(_problems(schema.document, "", ()), MAX_PROBLEMS))


def _problems(schema: JsonObject, path: str, steps: tuple[str, ...]) -> Iterator[DefaultProblem]:
    for inner, place, more in _below(schema, path):
        below = (*steps, *more)
        if inner.get("default") is not None:
            for why in _reasons(inner):
                yield DefaultProblem(
                    (*below, "default"), Problem(place, f"its default is refused by its schema: {why}")
                )
        yield from _problems(inner, place, below)


def _reasons(schema: JsonObject) -> Iterator[str]:
    try:
        compiled = compile_schema(schema, what="the schema")
        yield from map(str, compiled.problems(compiled.defaulted(schema["default"])))
    except FormatError as error:
        yield str(error)


def _below(schema: JsonObject, path: str) -> Iterator[tuple[JsonObject, str, tuple[str, ...]]]:
    """Yield the schemas directly below a schema, each with the path of its values and with its keys in the document."""
    for name, inner in find_object(schema, "properties").items():
        if isinstance(inner, dict):
            yield inner, f"{path}.{name}" if path else name, ("properties", name)
    for word, end in (("items", "[]"), ("additionalProperties", ".*" if path else "*")):
        if isinstance(inner := schema.get(word), dict):
            yield inner, f"{path}{end}", (word,)
