"""All that can be said of settings or values: their schema, its rules, what may not change, what is out of date.

The schema itself is asked here and now (:class:`~wharfinger.formats.openapi_schema.Schema`). Its rules are foreign programs and
run elsewhere (:class:`~wharfinger.packages.cel_pool.Rules`); they run first, and whatever the schema says, so that a user sees
everything at once. Only what follows from another problem is left out: a rule that could not be evaluated on a part of the
value that the schema refuses anyway.

No message quotes what the schema calls ``writeOnly``, or what a key's name says is a credential.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.cel_protocol import Finding, FindingKind
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, find
from wharfinger.formats.openapi_schema import Problem, Schema
from wharfinger.formats.schema_document import path_text
from wharfinger.formats.sensitive_keys import is_sensitive_key
from wharfinger.packages.cel_pool import Rules

SHORTEST_SECRET: Final = 3
LONGEST_NUMBER_BITS: Final = 64
"""A rule is given no larger one."""
MAX_SECRETS: Final = 1_000
"""That are looked for in messages; where there are more, no message is made of the value."""


@dataclass(frozen=True, slots=True)
class SettingsReport:
    """What is wrong, and what is only worth knowing, each sorted by its place; ``settings``: what was checked, with defaults."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    settings: JsonObject


async def report_on(
    schema: Schema, raw: JsonObject, value: JsonObject, old: JsonObject | None, rules: Rules
) -> SettingsReport:
    """Check ``value``, which is ``raw`` with its defaults, and how it differs from ``old``, with its defaults too.

    Without ``old`` nothing is immutable yet, and rules about changes do not apply. Raises RulesError.
    """
    findings: tuple[Finding, ...] = ()
    if schema.rules is not None:
        try:
            findings = await rules.evaluate(schema.rules, value, old)
        except FormatError as error:
            return SettingsReport((Problem("", str(error)),), (), value)
    problems = list(schema.problems(value))
    if old is not None:
        problems += schema.changes(value, old)
    warnings = list(schema.warnings(raw))
    if findings:
        refused = {problem.path for problem in problems}
        secrets = _secrets(schema, value) if any(finding.static for finding in findings) else frozenset()
        for finding in findings:
            place = path_text(finding.path)
            if finding.kind is FindingKind.ERROR and any(_is_within(path, place) for path in refused):
                continue
            problems.append(Problem(place, _said(finding, secrets)))
            if finding.kind is FindingKind.WARNING:
                warnings.append(Problem(place, f"the messageExpression of {finding.at} gave no message"))
    return SettingsReport(_sorted(problems), _sorted(warnings), value)


def _said(finding: Finding, secrets: frozenset[str] | None) -> str:
    if finding.kind is FindingKind.ERROR:
        rule = f"the rule {finding.at}" if finding.at else "a rule"
        return f"{rule} {finding.message}"
    if finding.static and (secrets is None or any(secret in finding.message for secret in secrets)):
        return finding.static
    return finding.message


def _is_within(path: str, place: str) -> bool:
    """Whether the path, or what it is in, is at or below the place, as texts."""
    return not place or path == place or path.startswith((f"{place}.", f"{place}["))


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.path, problem.message)))


def _secrets(schema: Schema, value: JsonValue) -> frozenset[str] | None:
    """The texts that no message may have in it, a number as it is written; None where they are too many."""
    found: set[str] = set()
    waiting: list[tuple[JsonValue, bool]] = [(value, False)]
    waiting += [(find(value, *path), True) for path in schema.write_only_paths(value)]
    while waiting:
        item, secret = waiting.pop()
        if isinstance(item, dict):
            waiting += [(inner, secret or is_sensitive_key(name)) for name, inner in item.items()]
        elif isinstance(item, list):
            waiting += [(inner, secret) for inner in item]
        elif secret and len(text := _text(item)) >= SHORTEST_SECRET:
            found.add(text)
            if len(found) > MAX_SECRETS:
                return None
    return frozenset(found)


def _text(item: JsonValue) -> str:
    """A scalar as a message would have it; "" for what is no secret, or a number that no message has in it."""
    if item is None or isinstance(item, bool) or (isinstance(item, int) and item.bit_length() > LONGEST_NUMBER_BITS):
        return ""
    return str(item)
