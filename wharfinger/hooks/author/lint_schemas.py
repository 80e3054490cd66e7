"""Checks of a package's schemas, and of its own values against them.

A schema with a misspelt keyword is still valid: the unknown word is ignored, so a check that the author relies on never happens.
Therefore every word in the place of a keyword is compared with the known keywords. The package's own values (``values.yaml``) are
checked as the daemon would check them for a user without any settings. Wrong values are reported. Missing values are not, because
the user may have to set them. Defaults that their own schema refuses are reported, too.
"""

import difflib
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.yaml.lines import Path
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.hooks.author.lint_sources import LintFinding, Sources, finding
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.definition.definition import SETTINGS_SCHEMAS, VALUES_SCHEMA, Definition
from wharfinger.packages.definition.module_folder import VALUES_FILE
from wharfinger.packages.settings.schema_defaults import refused_defaults
from wharfinger.packages.settings.values import default_problems

MAX_SCHEMAS: Final = 20_000
"""The largest number of nested schemas that are checked in one document."""
_MAPS: Final = frozenset({"properties", "patternProperties", "definitions", "$defs", "dependentSchemas"})
_SCHEMAS: Final = frozenset({"items", "additionalProperties", "additionalItems", "not", "contains", "propertyNames"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_KEYWORDS: Final = (_MAPS | _SCHEMAS | _LISTS) | frozenset(
    {
        "$anchor", "$comment", "$id", "$ref", "$schema", "components", "const", "default", "dependencies",
        "dependentRequired", "deprecated", "description", "discriminator", "enum", "example", "examples", "exclusiveMaximum",
        "exclusiveMinimum", "externalDocs", "format", "id", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
        "minLength", "minProperties", "minimum", "multipleOf", "nullable", "pattern", "readOnly", "required", "title", "type",
        "uniqueItems", "writeOnly", "xml", "if", "then", "else", "version", "apiVersions",
    }
)  # fmt: skip
_EXTENSION: Final = "x-"
_KNOWN_EXTENSIONS: Final = (
    "x-config-version", "x-deckhouse-immutable", "x-deckhouse-validations", "x-doc-default", "x-doc-example",
    "x-doc-examples", "x-doc-required", "x-examples", "x-extend", "x-kubernetes-embedded-resource",
    "x-kubernetes-group-version-kind", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
    "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-sensitive-data",
    "x-kubernetes-validations", "x-required-for-helm",
)  # fmt: skip


def lint_schemas(sources: Sources, definition: Definition | None) -> list[LintFinding]:
    """Check the schemas of a package. Also check its values and defaults if its definition could be read."""
    found: list[LintFinding] = []
    for name in (*SETTINGS_SCHEMAS, VALUES_SCHEMA):
        with suppress(FormatError):  # package check has reported invalid YAML
            found += _misspelt(sources, name, read_yaml(sources.text(name) or b"", what=name))
    if definition is not None:
        found += [*_wrong_values(sources, definition), *_refused_defaults(sources, definition)]
    return found


def misspelt(document: JsonValue) -> Iterator[tuple[Path, str]]:
    """Yield unknown words in the place of a schema's keywords, each with a message."""
    waiting: list[tuple[JsonValue, Path]] = [(document, ())]
    for _ in range(MAX_SCHEMAS):
        if not waiting:
            return
        schema, path = waiting.pop()
        if not isinstance(schema, dict):
            continue
        for word, value in schema.items():
            if word in _KEYWORDS:
                waiting += _inside(word, value, (*path, word))
            elif why := _complaint(word):
                yield (*path, word), why


def _misspelt(sources: Sources, name: str, document: JsonValue) -> Iterator[LintFinding]:
    documents = sources.documents(name)
    for path, why in misspelt(document):
        yield finding(name, documents[0].of(path) if documents else 1, Severity.WARNING, why)


def _inside(word: str, value: JsonValue, path: Path) -> Iterator[tuple[JsonValue, Path]]:
    """Yield the schemas in the value of the keyword ``word``, each with its path."""
    if word in _MAPS and isinstance(value, dict):
        yield from ((inner, (*path, key)) for key, inner in value.items())
    elif word in _SCHEMAS | _LISTS and isinstance(value, list):
        yield from ((inner, (*path, index)) for index, inner in enumerate(value))
    elif word in _SCHEMAS:
        yield value, path


def _complaint(word: str) -> str:
    """Return the message for an unknown keyword; "" for an unknown extension that resembles no known one."""
    known = _KNOWN_EXTENSIONS if word.startswith(_EXTENSION) else tuple(sorted(_KEYWORDS))
    if word in known:
        return ""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.75) if len(word) <= 40 else []
    if close:
        return f"{word[:40]}: not a keyword of a schema, so it has no effect; did you mean {close[0]!r}?"
    return "" if word.startswith(_EXTENSION) else f"{word[:40]}: not a keyword of a schema, so it has no effect"


def _wrong_values(sources: Sources, definition: Definition) -> Iterator[LintFinding]:
    """Yield the values in values.yaml that are refused."""
    for problem in default_problems(definition):
        yield finding(VALUES_FILE, _line_of(sources, definition, problem), Severity.ERROR, str(problem))


def _refused_defaults(sources: Sources, definition: Definition) -> Iterator[LintFinding]:
    """Yield the defaults that their own schema refuses."""
    written = next((name for name in SETTINGS_SCHEMAS if sources.text(name) is not None), SETTINGS_SCHEMAS[0])
    for name, some in zip((written, VALUES_SCHEMA), refused_defaults(definition), strict=True):
        documents = sources.documents(name)
        for each in some:
            line = documents[0].of(each.steps) if documents else 1
            yield finding(name, line, Severity.ERROR, str(each.problem))


def _line_of(sources: Sources, definition: Definition, problem: Problem) -> int:
    """Return the line of ``values.yaml`` that sets a value, either at the top level or under the package's name; 1 if there is
    no such line.
    """
    lines = (sources.line(VALUES_FILE, where) for where in (f"{definition.camel}.{problem.path}", problem.path))
    return next((line for line in lines if line is not None), 1)
