"""OpenAPI v3 schemas of packages and custom resources: they validate values, fill in defaults, and find secrets.

A schema is compiled once (:func:`compile_schema`):

* The module ``document`` reads the document, replaces its references and checks its limits.
* ``conversion`` converts the document to JSON Schema, with ``patterns`` and ``formats``.
* The library jsonschema-rs compiles the JSON Schema.

Then values are checked. jsonschema-rs decides whether a value fits, within the limits of ``cost``. ``explain`` finds why a value
was refused, and ``problems`` has the texts.

JSON Schema cannot express some of the extensions of Kubernetes and Deckhouse. ``lists`` checks sets, maps and embedded
resources, and its result is part of the decision. ``immutable`` finds forbidden changes, for which it needs the old value.
``deprecations`` finds warnings. The rules that ``validations`` reads are untrusted programs, so a Schema only lists them
(``rules``).

The other operations of a schema on values are in ``values``: defaults and pruning, which follow Kubernetes, and the search for
secrets (``writeOnly``). ``transforms`` derives schemas from schemas, as addon-operator does.

Neither a schema nor a value is ever changed, and results share nothing with them, so all threads can use one Schema.
"""

from dataclasses import dataclass, field

import jsonschema_rs

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.formats.schemas.conversion import Converted, to_json_schema
from wharfinger.formats.schemas.cost import MAX_COST, size, width
from wharfinger.formats.schemas.deprecations import deprecation_warnings, has_deprecated
from wharfinger.formats.schemas.document import SchemaError, ValuePath, expanded
from wharfinger.formats.schemas.formats import OWN_FORMATS
from wharfinger.formats.schemas.immutable import has_immutable, immutable_problems
from wharfinger.formats.schemas.lists import has_list_types, list_problems
from wharfinger.formats.schemas.patterns import pattern_options
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.validations import SchemaRules, rules_of
from wharfinger.formats.schemas.values import defaulted, has_write_only, pruned, write_only_paths


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema. ``document`` is its source with references replaced, and includes extensions (``x-…``).

    ``rules`` are its rules in CEL, None if it has no rules. The method ``problems`` does not evaluate them.
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
        """Return the problems of the value, at most ``limit``; () if it fits. Never raises.

        If a value is too large to be checked quickly (``cost``), its size is the only problem that is returned. No message
        contains a value that the schema marks as ``writeOnly``, or whose name marks it as a credential.
        """
        most = MAX_COST // self._width
        if (parts := size(value, most)) > most:
            return (Problem("", f"has {parts} parts or more; with this schema at most {most} can be checked"),)
        try:
            found: tuple[Problem, ...] = ()
            if not self._decider.is_valid(value):
                # jsonschema takes memory and time to import, and only a value that was refused needs it.
                from wharfinger.formats.schemas.explain import explain  # noqa: PLC0415

                found = explain(self._converted, self._decider, value, self.write_only_paths(value), max(limit, 1))
            if self._has_lists and len(found) < limit:
                found += list_problems(value, self.document, limit - len(found))
        except (ValueError, ShapeError):
            return (Problem("", "contains a value that has no JSON form"),)
        return found

    @property
    def compares(self) -> bool:
        """True if a value may be refused because of the old value."""
        return self._has_immutable or (self.rules is not None and self.rules.compare)

    def changes(self, value: JsonValue, old: JsonValue) -> tuple[Problem, ...]:
        """Return a problem for each immutable part that differs between ``value`` and ``old``. Both must include their
        defaults. Never raises.
        """
        try:
            return immutable_problems(value, old, self.document) if self._has_immutable else ()
        except ShapeError:
            return (Problem("", "contains a value that has no JSON form"),)

    def warnings(self, value: JsonValue) -> tuple[Problem, ...]:
        """Return a warning for each deprecated part that the value contains. Defaults must not have been filled in."""
        return deprecation_warnings(value, self.document) if self._has_deprecated else ()

    def defaulted(self, value: JsonValue) -> JsonValue:
        """Return the value with defaults, as Kubernetes fills them in: for missing properties, and in place of forbidden nulls.

        Raises ShapeError if the result exceeds the limits of the module ``values``.
        """
        return defaulted(value, self.document)

    def pruned(self, value: JsonValue) -> JsonValue:
        """Return the value without undeclared properties, as Kubernetes prunes it.

        Raises ShapeError if the value is nested too deeply.
        """
        return pruned(value, self.document)

    def write_only_paths(self, value: JsonValue) -> tuple[ValuePath, ...]:
        """Return the paths of parts under ``writeOnly: true``; nothing below a path is listed again.

        Returns only the root, ``()``, if the search would take too long: then the whole value must be treated as a secret.
        """
        return write_only_paths(value, self.document) if self._has_secrets else ()


def compile_schema(document: JsonValue, *, what: str) -> Schema:
    """Compile a schema; ``what`` names the schema in errors. Raises SchemaError, and nothing else."""
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
