"""Health rules, evaluated where the rules of settings schemas are: in worker processes that can be killed.

An expression is given to the workers as the one rule of a schema without types; what they find says whether it is true.
"""

from collections.abc import Iterable

from wharfinger.cluster.health.rules import HealthRule, bound
from wharfinger.formats.cel.protocol import FindingKind
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.validations import SchemaRules, rules_of
from wharfinger.packages.errors import RulesError
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.runtime.resources.release_policy import UpkeepError


class HealthExpressionError(ProgramError):
    """An expression has no answer for an object."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class HealthExpressions:
    """Implements :class:`~wharfinger.cluster.health.rules.Expressions`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        """Whether it is true of the object, which it calls ``self``. Raises HealthExpressionError."""
        try:
            findings = await self._rules.evaluate(_rule(expression), obj)
        except RulesError as error:
            raise HealthExpressionError(str(error), transient=error.transient) from error
        except FormatError as error:
            raise HealthExpressionError(str(error)) from error
        for finding in findings:
            if finding.kind is FindingKind.ERROR:
                raise HealthExpressionError(finding.message)
        return not findings


async def check_health_rules(health: Iterable[HealthRule], rules: Rules) -> None:
    """Whether the expressions are such: one that cannot be compiled would leave its objects in progress for ever.

    Raises UpkeepError naming the first that is not, RulesError where that cannot be told now.
    """
    for rule in health:
        for name, expression in (("current", rule.current), ("inProgress", rule.in_progress), ("failed", rule.failed)):
            if expression and (findings := await rules.check(_rule(bound(expression)))):
                raise UpkeepError(
                    f"spec.healthChecks of {rule.kind}: {name}: {findings[0].message}; correct the expression"
                )


def _rule(expression: str) -> SchemaRules:
    schema: JsonObject = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": expression, "message": "it is false"}],
    }
    rules = rules_of(schema, what="health rule")
    if rules is None:
        raise HealthExpressionError("it is empty")
    return rules
