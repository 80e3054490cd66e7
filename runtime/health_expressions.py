"""Health rules, evaluated where the rules of settings schemas are: in worker processes that can be killed.

An expression is given to the workers as the one rule of a schema without types; what they find says whether it is true.
"""

from wharfinger.formats.cel_protocol import FindingKind
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json_value import JsonObject
from wharfinger.formats.schema_validations import SchemaRules, rules_of
from wharfinger.packages.cel_pool import Rules
from wharfinger.packages.errors import RulesError


class HealthExpressionError(ProgramError):
    """An expression has no answer for an object."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class HealthExpressions:
    """Implements :class:`~wharfinger.cluster.health_rules.Expressions`."""

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
