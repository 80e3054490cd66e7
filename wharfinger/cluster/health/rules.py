"""What "ready" means for a kind whose objects do not say it the usual way: expressions in CEL, in the shape that Flux gave them.

::

    healthChecks:
      - apiVersion: example.test/v1
        kind: Backup
        current: status.phase == 'Done'
        inProgress: status.phase == 'Running'
        failed: has(status.error)

An expression sees the parts of the object as ``metadata``, ``spec`` and ``status`` (empty objects where they are missing), and
the whole as ``self``. Being deleted, or not observed by its controller yet, an object is in progress whatever they say. Else they
are asked in the order ``inProgress``, ``failed``, ``current``, and the first that is true decides; none: in progress.

Expressions are foreign programs. Where and how they run is behind :class:`Expressions`; here they are only text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness, condition_words, unsettled
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_str, type_name

MAX_RULES: Final = 100
MAX_EXPRESSION: Final = 4_096
"""Characters of one expression."""
_EXPRESSIONS: Final = ("current", "inProgress", "failed")
_NAMES: Final = ("metadata", "spec", "status")


class HealthRuleError(FormatError):
    """A health rule says what cannot be."""


@dataclass(frozen=True, slots=True)
class HealthRule:
    """What the objects of one kind are, as expressions; "" where there is none."""

    api_version: str
    kind: str
    current: str
    in_progress: str = ""
    failed: str = ""


class Expressions(Protocol):
    """What evaluates an expression on an object, where it can be killed."""

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        """Whether it is true of ``self``. Raises ProgramError: transient where that has nothing to do with the expression."""
        ...


def read_health_rules(value: JsonValue, what: str) -> tuple[HealthRule, ...]:
    """The rules as people write them, a list; None: no rules. ``what`` names its place. Raises FormatError."""
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
            raise HealthRuleError(f"{what}[{at}]: there are two rules for {kind[1]} of {kind[0]}; make them one")
    return rules


def _read_rule(value: JsonValue, what: str) -> HealthRule:
    said = as_object(value, what)
    known = {"apiVersion", "kind", *_EXPRESSIONS}
    if unknown := sorted(said.keys() - known):
        raise HealthRuleError(f"{what}: {unknown[0]!r:.80} is none of {', '.join(sorted(known))}")
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
    """The rule that is about this kind, or None."""
    return next((rule for rule in rules if (rule.api_version, rule.kind) == (api_version, kind)), None)


def bound(expression: str) -> str:
    """The expression over ``self`` alone, as an evaluator takes it."""
    for name in _NAMES:
        expression = f"cel.bind({name}, has(self.{name}) ? dyn(self.{name}) : dyn({{}}), (\n{expression}\n))"
    return expression


async def judged(rule: HealthRule, obj: JsonObject, expressions: Expressions) -> Readiness:
    """The readiness of an object by its rule. Raises ProgramError where that cannot be told, and another time it might."""
    if (waiting := unsettled(obj)) is not None:
        return waiting
    words = condition_words(obj)
    if rule.in_progress and await _holds(rule.in_progress, obj, expressions):
        return InProgress(words or "in progress by its health rule")
    if rule.failed and await _holds(rule.failed, obj, expressions):
        return Failed(words or "failed by its health rule")
    try:
        current = await expressions.evaluate(bound(rule.current), obj)
    except ProgramError as error:
        if error.transient:
            raise
        return InProgress(f"its health rule has no answer: {error}")
    return Current() if current else InProgress(words or "not ready by its health rule")


async def _holds(expression: str, obj: JsonObject, expressions: Expressions) -> bool:
    """Whether it is true. One without an answer is not: often it asks for what the status does not have yet."""
    try:
        return await expressions.evaluate(bound(expression), obj)
    except ProgramError as error:
        if error.transient:
            raise
        return False
