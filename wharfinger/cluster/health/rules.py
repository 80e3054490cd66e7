"""Rules of readiness for kinds that do not report readiness in the usual way: expressions in CEL, in the form that Flux defined.

::

    healthChecks:
      - apiVersion: example.test/v1
        kind: Backup
        current: status.phase == 'Done'
        inProgress: status.phase == 'Running'
        failed: has(status.error)

An expression sees the parts of the object as ``metadata``, ``spec`` and ``status`` (empty objects if they are missing), and the
complete object as ``self``. An object that is being deleted, or is not observed by its controller yet, is in progress without any
evaluation. Otherwise the expressions are evaluated in the order ``inProgress``, ``failed``, ``current``, and the first true
expression decides; if no expression is true, the object is in progress.

Expressions are written by users, so they are not trusted. An implementation of :class:`Expressions` evaluates them in another
process; this module only passes them on as text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness, condition_words, unsettled
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_str, type_name

MAX_RULES: Final = 100
MAX_EXPRESSION: Final = 4_096
"""The largest number of characters of one expression."""
_EXPRESSIONS: Final = ("current", "inProgress", "failed")
_NAMES: Final = ("metadata", "spec", "status")


class HealthRuleError(FormatError):
    """A health rule is not valid."""


@dataclass(frozen=True, slots=True)
class HealthRule:
    """The expressions that determine the health of the objects of one kind; "" for an expression that is not set."""

    api_version: str
    kind: str
    current: str
    in_progress: str = ""
    failed: str = ""


class Expressions(Protocol):
    """An evaluator of expressions on an object, in a process that can be killed."""

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        """Return whether the expression is true for the object ``obj``, which is ``self`` in the expression.

        Raises ProgramError, which is transient if the expression did not cause it.
        """
        ...


def read_health_rules(value: JsonValue, what: str) -> tuple[HealthRule, ...]:
    """Return the rules in a list that a user wrote; () for None. ``what`` names the list in errors. Raises FormatError."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise HealthRuleError(f"{what}: expected a list of rules, found {type_name(value)}")
    if len(value) > MAX_RULES:
        raise HealthRuleError(f"{what}: {len(value)} rules are over the limit of {MAX_RULES}")
    rules = tuple(_read_rule(item, f"{what}[{at}]") for at, item in enumerate(value))
    kinds = [(rule.api_version, rule.kind) for rule in rules]
    for at, kind in enumerate(kinds):
        if kind in kinds[:at]:
            raise HealthRuleError(f"{what}[{at}]: found two rules for {kind[1]} of {kind[0]}; merge them into one")
    return rules


def _read_rule(value: JsonValue, what: str) -> HealthRule:
    said = as_object(value, what)
    known = {"apiVersion", "kind", *_EXPRESSIONS}
    if unknown := sorted(said.keys() - known):
        raise HealthRuleError(f"{what}: expected one of {', '.join(sorted(known))}, found {unknown[0]!r:.80}")
    texts = {name: find_str(said, name).strip() for name in known}
    for name in ("apiVersion", "kind", "current"):
        if not texts[name]:
            raise HealthRuleError(f"{what}.{name}: required")
    for name in _EXPRESSIONS:
        if len(texts[name]) > MAX_EXPRESSION:
            raise HealthRuleError(f"{what}.{name}: over the limit of {MAX_EXPRESSION} characters")
    return HealthRule(
        texts["apiVersion"],
        texts["kind"],
        texts["current"],
        in_progress=texts["inProgress"],
        failed=texts["failed"],
    )


def rule_for(rules: Iterable[HealthRule], api_version: str, kind: str) -> HealthRule | None:
    """Return the rule for this kind; None if there is no rule."""
    return next((rule for rule in rules if (rule.api_version, rule.kind) == (api_version, kind)), None)


def bound(expression: str) -> str:
    """Return an expression of a rule in the form that an evaluator needs: the only variable is ``self``, and the other names in
    the expression are bound to fields of ``self``.
    """
    for name in _NAMES:
        expression = f"cel.bind({name}, has(self.{name}) ? dyn(self.{name}) : dyn({{}}), (\n{expression}\n))"
    return expression


async def judged(rule: HealthRule, obj: JsonObject, expressions: Expressions) -> Readiness:
    """Return the readiness of an object by its rule. Raises ProgramError if it cannot be determined for the time being."""
    if (waiting := unsettled(obj)) is not None:
        return waiting
    words = condition_words(obj)
    if rule.in_progress and await _holds(rule.in_progress, obj, expressions):
        return InProgress(words or "in progress according to its health rule")
    if rule.failed and await _holds(rule.failed, obj, expressions):
        return Failed(words or "failed according to its health rule")
    try:
        current = await expressions.evaluate(bound(rule.current), obj)
    except ProgramError as error:
        if error.transient:
            raise
        return InProgress(f"its health rule cannot be evaluated: {error}")
    return Current() if current else InProgress(words or "not ready according to its health rule")


async def _holds(expression: str, obj: JsonObject, expressions: Expressions) -> bool:
    """Return whether an expression is true.

    An expression that fails counts as false: often it reads a part of the status that does not exist yet.
    """
    try:
        return await expressions.evaluate(bound(expression), obj)
    except ProgramError as error:
        if error.transient:
            raise
        return False
