"""The evaluation of health rules (CEL) in worker processes, which also evaluate the rules in settings schemas. A worker that
takes too long is killed.

A worker gets an expression as the only rule of a schema without types. If the worker returns no finding, the expression is
true.
"""

from collections.abc import Iterable

from wharfinger.cluster.health.rules import HealthRule, bound
from wharfinger.formats.cel.protocol import FindingKind
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.validations import SchemaRules, rules_of
from wharfinger.packages.errors import RulesError
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.runtime.resources.release_policy import ReleasePolicyError


class HealthExpressionError(ProgramError):
    """An expression is empty, or cannot be evaluated for an object."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class HealthExpressions:
    """The implementation of :class:`~wharfinger.cluster.health.rules.Expressions` that evaluates in worker processes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        """Return whether the expression is true for the object; in the expression, ``self`` is the object. Raises
        HealthExpressionError."""
        try:
            findings = await self._rules.evaluate(expression_rule(expression), obj)
        except RulesError as error:
            raise HealthExpressionError(str(error), transient=error.transient) from error
        except FormatError as error:
            raise HealthExpressionError(str(error)) from error
        for finding in findings:
            if finding.kind is FindingKind.ERROR:
                raise HealthExpressionError(finding.message)
        return not findings


async def check_health_rules(health: Iterable[HealthRule], rules: Rules) -> None:
    """Check that all expressions can be compiled. Without this check, objects with an invalid rule would stay in progress
    forever.

    Raises ReleasePolicyError, which names the first invalid expression, and RulesError if the expressions cannot be checked
    now.
    """
    for rule in health:
        for name, expression in (("current", rule.current), ("inProgress", rule.in_progress), ("failed", rule.failed)):
            if expression and (findings := await rules.check(expression_rule(bound(expression)))):
                raise ReleasePolicyError(
                    f"spec.healthChecks of {rule.kind}: {name}: {findings[0].message}; correct the expression"
                )


def expression_rule(expression: str) -> SchemaRules:
    """Return an expression as the only rule of a schema without types. Raises HealthExpressionError, FormatError."""
    schema: JsonObject = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": expression, "message": "it is false"}],
    }
    rules = rules_of(schema, what="health rule")
    if rules is None:
        raise HealthExpressionError("it is empty")
    return rules
