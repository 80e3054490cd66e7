"""The reasons why a value does not fit a schema, found by jsonschema after jsonschema-rs has decided that it does not.

jsonschema knows the sub-schema behind each error, so that a message can name what would have been right. But jsonschema is slow,
and a value can make it hang. So it runs within a budget, and the module ``keywords`` replaces some of its keywords.
If the two engines disagree, the problems that jsonschema-rs found are returned, with values masked in its messages.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, cast

import jsonschema_rs
from jsonschema import ValidationError

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, find
from wharfinger.formats.redaction.sensitive_keys import is_sensitive_key
from wharfinger.formats.schemas.conversion import Converted
from wharfinger.formats.schemas.document import ValuePath, path_text
from wharfinger.formats.schemas.keywords import explaining_validator, quiet
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.problems import Finding, problem_of, types_sentence
from wharfinger.formats.schemas.work import WorkError

MAX_WORK: Final = 500_000
"""The limit on the keywords, members and items that jsonschema may check. This number of checks takes half a second; a value
of 1 MB needs far fewer.
"""

_MAX_ALTERNATIVES: Final = 3


def explain(
    converted: Converted,
    validator: jsonschema_rs.Draft202012Validator,
    value: JsonValue,
    secrets: Sequence[ValuePath],
    limit: int,
) -> tuple[Problem, ...]:
    """Return the problems of a value that does not fit its schema: at least one, and at most ``limit``.

    No message shows any part of the values at the paths in ``secrets``.
    """
    if _depth(value) > MAX_DEPTH:
        return (Problem("", f"is nested deeper than {MAX_DEPTH} levels"),)
    explanation = _Explanation(converted, secrets, limit)
    try:
        found = explanation.of_errors(explaining_validator(converted.schema, MAX_WORK).iter_errors(quiet(value)))
    except WorkError:
        return (Problem("", "does not fit the schema, which has too many alternatives to find the one that fits best"),)
    return found or explanation.of_decisions(validator.iter_errors(value), value)


class _Explanation:
    def __init__(self, converted: Converted, secrets: Sequence[ValuePath], limit: int) -> None:
        self.schema = converted.schema
        self.patterns = converted.patterns
        self.secrets = frozenset(secrets)
        self.limit = limit

    def of_errors(self, errors: Iterable[ValidationError]) -> tuple[Problem, ...]:
        """Return the problems found before the budget was spent.

        Raises WorkError if the budget was spent before any problem was found.
        """
        found: dict[Problem, None] = {}
        try:
            for error in errors:
                found.update(dict.fromkeys(self.of_error(error, ())))
                if len(found) >= self.limit:
                    break
        except WorkError:
            if not found:
                raise
        return tuple(islice(found, self.limit))

    def of_error(self, error: ValidationError, base: ValuePath) -> list[Problem]:
        """Return the error's problems; ``base`` is the path of the value at which the error's own path starts."""
        path = (*base, *error.relative_path)
        if error.validator in {"anyOf", "oneOf"} and isinstance(error.validator_value, list):
            return self.of_alternatives(error, path, len(error.validator_value))
        finding = Finding(
            path,
            error.validator if isinstance(error.validator, str) else "falseSchema",
            cast("JsonValue", error.validator_value),
            cast("JsonValue", error.instance),
            cast("JsonObject", error.schema) if isinstance(error.schema, dict) else {},
            error.message,
        )
        return [self.problem_of(finding) or Problem(path_text(path), "does not fit the schema")]

    def of_alternatives(self, error: ValidationError, path: ValuePath, count: int) -> list[Problem]:
        path, _ = self.visible(path)
        if not error.context:
            return [Problem(path_text(path), f"fits more than one of {count} alternatives, and may fit only one")]
        branches: dict[str | int, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        near = [errors for errors in branches.values() if not any(map(_is_other_type, errors))]
        if len(near) == 1:
            return [problem for inner in near[0] for problem in self.of_error(inner, path)]
        if not near:
            names = [name for errors in branches.values() for inner in errors for name in _expected_types(inner)]
            return [
                Problem(path_text(path), types_sentence(list(dict.fromkeys(names)), cast("JsonValue", error.instance)))
            ]
        here = path_text(path)
        first = [str(self.of_error(errors[0], path)[0]) for errors in near[:_MAX_ALTERNATIVES]]
        ways = dict.fromkeys(
            text.removeprefix(f"{here}.").removeprefix(f"{here}: ") if here else text for text in first
        )
        return [Problem(here, f"fits none of {count} alternatives: {'; or '.join(ways)}")]

    def of_decisions(self, errors: Iterable[jsonschema_rs.ValidationError], value: JsonValue) -> tuple[Problem, ...]:
        """Return the errors of jsonschema-rs, the deciding engine, as problems."""
        found: dict[Problem, None] = {}
        for error in errors:
            for finding in _findings(error, value, self.schema):
                problem = self.problem_of(finding)
                path, _ = self.visible(finding.path)
                found[problem or Problem(path_text(path), error.message)] = None
            if len(found) >= self.limit:
                break
        return tuple(islice(found, self.limit)) or (Problem("", "does not fit the schema"),)

    def problem_of(self, finding: Finding) -> Problem | None:
        path, shown = self.visible(finding.path)
        if not shown and path != finding.path and finding.keyword == "required":
            return Problem(path_text(path), "lacks a required member")
        visible = Finding(path, finding.keyword, finding.expected, finding.instance, finding.schema, finding.name)
        return problem_of(visible, shown=shown, patterns=self.patterns)

    def visible(self, path: ValuePath) -> tuple[ValuePath, bool]:
        """Return the part of the path that may be shown, and whether the value there may be shown."""
        for length in range(len(path) + 1):
            if path[:length] in self.secrets:
                return path[:length], False
        last = next((step for step in reversed(path) if isinstance(step, str)), "")
        return path, not is_sensitive_key(last)


def _is_other_type(error: ValidationError) -> bool:
    """Return whether the error says that the value itself has another type than the alternative requires."""
    return error.validator == "type" and not error.relative_path


def _expected_types(error: ValidationError) -> list[str]:
    if not _is_other_type(error):
        return []
    expected = error.validator_value
    return [str(name) for name in (expected if isinstance(expected, list) else [expected])]


def _findings(error: jsonschema_rs.ValidationError, value: JsonValue, schema: JsonObject) -> list[Finding]:
    path = tuple(error.instance_path)
    expected = cast("JsonValue", error.kind.value)
    instance, around = find(value, *path), find(schema, *error.schema_path[:-1])
    inner = around if isinstance(around, dict) else {}
    unknown: list[str] = []
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        unknown = error.kind.unexpected
    elif isinstance(instance, dict) and [*error.schema_path][-1:] == ["additionalProperties"]:
        unknown = list(instance)  # the engine reports a closed schema without properties as the schema ``false``
    if unknown:
        return [Finding(path, "additionalProperties", expected, instance, inner, name) for name in unknown]
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
        return [Finding(path, "required", expected, instance, inner, error.kind.property)]
    return [Finding(path, error.kind.name, expected, instance, inner)]


def _depth(value: JsonValue) -> int:
    """Return the largest number of lists and objects that lie inside one another in the value; 0 for a scalar."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
    return depth
