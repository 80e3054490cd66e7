"""The evaluation of the match conditions of policies and webhooks: whether all of them are true for a request."""

from collections.abc import Mapping, Sequence

from wharfinger.control_plane.admission.evaluation import (
    CONDITIONS_BUDGET,
    OutOfBudgetError,
    Step,
    evaluated,
    step_of,
)
from wharfinger.control_plane.api.admissionregistration import expression_environment as environment
from wharfinger.control_plane.cel.values.types import Type
from wharfinger.control_plane.cel.values.values import Value
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.wire.status import aggregated
from wharfinger.formats.json.value import JsonObject


class ConditionError(Exception):
    """At least one match condition could not be evaluated, and no other condition is false."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(aggregated(errors))


class Conditions:
    """The match conditions of a policy or webhook.

    ``variables`` are the variables that the policy defines. ``strict`` is true if the failure policy is ``Fail``.
    """

    def __init__(
        self, spec: JsonObject, known: environment.Environment, variables: Mapping[str, Step], *, strict: bool
    ) -> None:
        self._steps = steps(parts(spec, "matchConditions"), "expression", known, *environment.CONDITION)
        self._variables = variables
        self._strict = strict

    def hold(self, names: Mapping[str, Value]) -> bool:
        """Return whether all conditions are true.

        If one condition is false, errors of the others are ignored. With the failure policy ``Ignore``, a condition that cannot
        be evaluated counts as false; with ``Fail``, this method raises ConditionError or OutOfBudgetError.
        """
        if not self._steps:
            return True
        try:
            outcomes, _ = evaluated(self._steps, self._variables, names, CONDITIONS_BUDGET)
        except OutOfBudgetError:
            if self._strict:
                raise
            return False
        errors: dict[str, None] = {}
        for outcome in outcomes:
            if outcome is not None and outcome.error:
                errors[outcome.error] = None
            elif outcome is not None and outcome.value is False:
                return False
        if errors and self._strict:
            raise ConditionError([*errors])
        return not errors


def steps(items: Sequence[JsonObject], field: str, known: environment.Environment, *wanted: Type) -> list[Step | None]:
    """Compile the expression in a field of each item; the result is None for an item without this field."""
    return [step_of(text(item, field), known, *wanted) if text(item, field) else None for item in items]
