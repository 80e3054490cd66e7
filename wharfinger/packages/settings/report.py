"""The full report on settings or values: violations of the schema and its rules, changed immutable fields, deprecated fields.

The schema itself is checked directly (:class:`~wharfinger.formats.schemas.openapi_schema.Schema`). Its rules are foreign
programs and run elsewhere (:class:`~wharfinger.packages.settings.cel_pool.Rules`). They are evaluated even if the schema
refuses the value, so that a user sees all problems together. If the schema refuses a part of the value, errors of rules that
could not be evaluated on that part are left out, because they follow from that problem.

No message quotes a secret, neither its new nor its old value. A value is a secret if the schema marks it as ``writeOnly``, or if
its key is named like a credential. A rule may build a message from all of its input, in any form (cut, encoded, in capitals), so
messages are not searched for secrets. Instead, if the rule's input contains a secret, the rule's fixed message is used.

Foreign text (from a package or a user) is reduced to one printable line, because it is written to statuses, logs and terminals.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.cel.protocol import Finding, FindingKind
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.formats.redaction.sensitive_keys import is_sensitive_key
from wharfinger.formats.schemas.document import ValuePath, path_text
from wharfinger.formats.schemas.openapi_schema import Schema
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.settings.cel_pool import Rules

MAX_SECRETS: Final = 10_000
"""The largest number of secret places in a value. If the schema marks more places as secret, the whole value is secret."""

_ANY: Final = 0
"""A step of a path that matches every index of a list."""


@dataclass(frozen=True, slots=True)
class SettingsReport:
    """The problems and warnings, each sorted by place; ``settings`` are the checked settings, with defaults."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    settings: JsonObject


async def report_on(
    schema: Schema, raw: JsonObject, value: JsonObject, old: JsonObject | None, rules: Rules
) -> SettingsReport:
    """Check a value, and its changes from the old value. ``raw`` is the value as the user gave it; ``value`` and ``old``
    contain the defaults, too.

    Without ``old``, no field is immutable yet, and rules about changes do not apply. Raises RulesError.
    """
    findings: tuple[Finding, ...] = ()
    if schema.rules is not None:
        try:
            findings = await rules.evaluate(schema.rules, value, old)
        except FormatError as error:
            return SettingsReport(_sorted([Problem("", str(error))]), (), value)
    problems = list(schema.problems(value))
    if old is not None:
        problems += schema.changes(value, old)
    warnings = list(schema.warnings(raw))
    if findings:
        refused = {problem.path for problem in problems}
        made = any(finding.static for finding in findings)
        secrets = _Secrets(schema, (value, old) if made else ())
        for finding in findings:
            place = path_text(finding.path)
            if finding.kind is FindingKind.ERROR and any(_is_within(path, place) for path in refused):
                continue
            problems.append(Problem(place, _said(finding, secrets)))
            if finding.kind is FindingKind.WARNING:
                warnings.append(Problem(place, f"the messageExpression of {finding.at} gave no message"))
    return SettingsReport(_sorted(problems), _sorted(warnings), value)


def _said(finding: Finding, secrets: "_Secrets") -> str:
    if finding.kind is FindingKind.ERROR:
        rule = f"the rule {finding.at}" if finding.at else "a rule"
        return f"{rule} {finding.message}"
    return finding.static if finding.static and secrets.are_at(finding.made_of) else finding.message


def _is_within(path: str, place: str) -> bool:
    """Return whether a path is at or below a place; both are texts."""
    return not place or path == place or path.startswith((f"{place}.", f"{place}["))


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    shown = (Problem(_printable(problem.path), _printable(problem.message)) for problem in problems)
    return tuple(sorted(dict.fromkeys(shown), key=lambda problem: (problem.path, problem.message)))


def _printable(text: str) -> str:
    """Return foreign text in one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in text)


class _Place:
    """A place in a value. If ``is_secret`` is set, everything at this place is secret; otherwise secrets lie below it."""

    __slots__ = ("inside", "is_secret")

    def __init__(self) -> None:
        self.inside: dict[str | int, _Place] = {}
        self.is_secret = False

    def merge(self, other: "_Place") -> None:
        self.is_secret = self.is_secret or other.is_secret
        for step, inner in other.inside.items():
            mine = self.inside.setdefault(step, inner)
            if mine is not inner:
                mine.merge(inner)


class _Secrets:
    """The places of secrets in values. Indexes of lists are ignored, because an item's index may have changed."""

    def __init__(self, schema: Schema, values: Iterable[JsonValue]) -> None:
        self._root = _Place()
        for value in values:
            self._root.merge(_named(value) or _Place())
            paths = schema.write_only_paths(value)
            self._root.is_secret = self._root.is_secret or len(paths) > MAX_SECRETS
            for path in paths[:MAX_SECRETS]:
                if not _is_empty(find(value, *path)):
                    self._add(path)

    def are_at(self, path: ValuePath) -> bool:
        """Return whether the value at a path contains a secret, or is part of a secret."""
        at: _Place | None = self._root
        for step in path:
            if at is None or at.is_secret:
                break
            at = at.inside.get(_step(step))
        return at is not None and (at.is_secret or bool(at.inside))

    def _add(self, path: ValuePath) -> None:
        at = self._root
        for step in path:
            at = at.inside.setdefault(_step(step), _Place())
        at.is_secret = True


def _named(value: JsonValue) -> _Place | None:
    """Return the places of the secrets in a value; None if there are none. A value counts as a secret if the name of its key
    suggests a secret, unless the value is empty or a boolean.
    """
    found = _Place()
    if isinstance(value, dict):
        for name, item in value.items():
            inner: _Place | None = None
            if not is_sensitive_key(name):
                inner = _named(item)
            elif not _is_empty(item) and not isinstance(item, bool):
                inner = _Place()
                inner.is_secret = True
            if inner is not None:
                found.inside[name] = inner
    elif isinstance(value, list):
        for item in value:
            inner = _named(item)
            if inner is not None:
                found.inside.setdefault(_ANY, _Place()).merge(inner)
    return found if found.inside else None


def _step(step: str | int) -> str | int:
    return _ANY if isinstance(step, int) else step


def _is_empty(value: JsonValue) -> bool:
    return value is None or value in ("", [], {})
