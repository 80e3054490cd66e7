"""OpenAPI v3 schemas of packages and custom resources: is a value right, what is it with its defaults, where are secrets.

A schema is compiled once (:func:`compile_schema`) and then only asked. Compiling takes four steps, each a module:

* ``document`` reads the document, puts its references in place and holds it to limits;
* ``conversion`` makes JSON Schema of it, ``patterns`` and ``formats`` helping;
* jsonschema-rs compiles that, and decides about values from then on, within what ``cost`` lets through;
* ``explain`` says why a value was refused, in the words of ``problems``.

JSON Schema has no words for some of what Kubernetes and Deckhouse add: ``lists`` (sets, maps, embedded resources) is part
of deciding. ``immutable`` needs the value that was there before, ``deprecations`` warns, and the rules of
``validations`` are foreign programs: of them a Schema only knows which there are (``rules``).

What a schema does to values beside judging them (defaults, pruning, ``writeOnly``) follows Kubernetes and is in
``values``; ``transforms`` makes schemas of schemas, as addon-operator does.

Neither a schema nor a value is ever changed, and results share nothing with them, so that one Schema serves every thread.
"""

from dataclasses import dataclass, field

import jsonschema_rs

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.schemas.conversion import Converted, to_json_schema
from wharfinger.formats.schemas.cost import MAX_COST, size, width
from wharfinger.formats.schemas.deprecations import deprecation_warnings, has_deprecated
from wharfinger.formats.schemas.document import SchemaError, ValuePath, expanded
from wharfinger.formats.schemas.explain import explain
from wharfinger.formats.schemas.formats import OWN_FORMATS
from wharfinger.formats.schemas.immutable import has_immutable, immutable_problems
from wharfinger.formats.schemas.lists import has_list_types, list_problems
from wharfinger.formats.schemas.patterns import pattern_options
from wharfinger.formats.schemas.problems import Problem
from wharfinger.formats.schemas.validations import SchemaRules, rules_of
from wharfinger.formats.schemas.values import defaulted, has_write_only, pruned, write_only_paths


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema. ``document`` is what was compiled, with references put in place; extensions (``x-…``) are in it.

    ``rules``: its rules in CEL, None where it has none; ``problems`` does not evaluate them.
    """

    document: JsonObject
    rules: SchemaRules | None
    _converted: Converted = field(repr=False, compare=False)
    _decider: jsonschema_rs.Draft202012Validator = field(repr=False, compare=False)
    _has_secrets: bool = field(repr=False, compare=False)
    _width: int = field(repr=False, compare=False)
    _has_lists: bool = field(repr=False, compare=False)
    _has_immutable: bool = field(repr=False, compare=False)
    _has_deprecated: bool = field(repr=False, compare=False)

    def problems(self, value: JsonValue, *, limit: int = 20) -> tuple[Problem, ...]:
        """What is wrong with the value, at most ``limit``; () if it fits. Never raises.

        A value that is so large that checking it would take long (``cost``) is refused for that, as the one problem.
        No message has a value in it that the schema calls ``writeOnly``, or whose name says that it is a credential.
        """
        most = MAX_COST // self._width
        if (parts := size(value, most)) > most:
            return (Problem("", f"has {parts} parts or more; with this schema at most {most} can be checked"),)
        try:
            found: tuple[Problem, ...] = ()
            if not self._decider.is_valid(value):
                found = explain(self._converted, self._decider, value, self.write_only_paths(value), max(limit, 1))
            if self._has_lists and len(found) < limit:
                found += list_problems(value, self.document, limit - len(found))
        except (ValueError, ShapeError):
            return (Problem("", "has something in it that has no form in JSON"),)
        return found

    @property
    def compares(self) -> bool:
        """Whether a value may be refused for what was there before it."""
        return self._has_immutable or (self.rules is not None and self.rules.compare)

    def changes(self, value: JsonValue, old: JsonValue) -> tuple[Problem, ...]:
        """What differs from the old value and is immutable; both with their defaults. Never raises."""
        try:
            return immutable_problems(value, old, self.document) if self._has_immutable else ()
        except ShapeError:
            return (Problem("", "has something in it that has no form in JSON"),)

    def warnings(self, value: JsonValue) -> tuple[Problem, ...]:
        """What of the value, given without defaults, is deprecated."""
        return deprecation_warnings(value, self.document) if self._has_deprecated else ()

    def defaulted(self, value: JsonValue) -> JsonValue:
        """The value with defaults, as Kubernetes fills them in: where a property is missing, or null and not nullable.

        Raises ShapeError where the result would be out of all proportion (``values``).
        """
        return defaulted(value, self.document)

    def pruned(self, value: JsonValue) -> JsonValue:
        """The value without undeclared properties, as Kubernetes prunes it. Raises ShapeError if nested too deep."""
        return pruned(value, self.document)

    def write_only_paths(self, value: JsonValue) -> tuple[ValuePath, ...]:
        """Keys and indexes of what the value has under ``writeOnly: true``; nothing below a path is listed again.

        Only the root, ``()``, where finding out would take too long: all of it is then to be treated as a secret.
        """
        return write_only_paths(value, self.document) if self._has_secrets else ()


def compile_schema(document: JsonValue, *, what: str) -> Schema:
    """Compile a schema; ``what`` names it in errors. Raises SchemaError, and nothing else."""
    schema = expanded(document, what=what)
    converted = to_json_schema(schema, what=what)
    try:
        decider = _decider(converted.schema)
        return Schema(
            schema,
            rules_of(schema, what=what),
            converted,
            decider,
            has_write_only(schema),
            width(converted.schema),
            has_list_types(schema, what=what),
            has_immutable(schema, what=what),
            has_deprecated(schema),
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise SchemaError(f"{what}: {str(error).partition(chr(10))[0]}") from error


def _decider(schema: JsonObject) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        schema,
        validate_formats=True,
        formats=dict(OWN_FORMATS),
        pattern_options=pattern_options(),
        mask="the value",
        offline=True,
    )
