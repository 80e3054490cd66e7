"""The evaluation of ValidatingAdmissionPolicies, once for each of their bindings that matches a request (KEP-3488)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.admission.conditions import ConditionError, Conditions, steps
from wharfinger.control_plane.admission.evaluation import (
    BUDGET,
    Outcome,
    OutOfBudgetError,
    Step,
    evaluated,
    step_of,
)
from wharfinger.control_plane.admission.inputs import authorizers, inputs
from wharfinger.control_plane.admission.matching import match_of, matched
from wharfinger.control_plane.admission.parameters import ConfigurationError, parameter_kind, parameters
from wharfinger.control_plane.admission.request import Resource, namespace_of, resource_of
from wharfinger.control_plane.api.admissionregistration import expression_environment as environment
from wharfinger.control_plane.api.admissionregistration.expressions import Compiler
from wharfinger.control_plane.api.common.admission import Admission
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import parts, texts
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject

MESSAGE_BYTES: Final = 5 * 1024
"""The maximum length in bytes of the message of a ``messageExpression``; a longer one is not used."""
_CODES: Final = {"Forbidden": 403, "RequestEntityTooLarge": 413}


@dataclass(frozen=True, slots=True)
class Denial:
    """A policy's denial of a request; ``reason`` is the reason of the Status."""

    message: str
    reason: str = "Invalid"


class CompiledPolicy:
    """A ValidatingAdmissionPolicy with its compiled expressions."""

    def __init__(self, policy: JsonObject) -> None:
        self.policy = policy
        self.name = text(policy, "metadata", "name")
        spec = policy.get("spec")
        self.strict = text(spec, "failurePolicy") != "Ignore"
        compiler = Compiler(spec if isinstance(spec, dict) else {})
        self._variables: dict[str, Step] = {}
        for variable in parts(spec, "variables"):
            name, expression = text(variable, "name"), text(variable, "expression")
            self._variables[name] = step_of(expression, compiler.environment())
            compiler.variable(name, expression)
        known, plain = compiler.environment(), compiler.environment(authorizer=False)
        self._validations = parts(spec, "validations")
        self._conditions = Conditions(
            spec if isinstance(spec, dict) else {}, known, self._variables, strict=self.strict
        )
        self._steps = steps(self._validations, "expression", known, *environment.CONDITION)
        self._messages = steps(self._validations, "messageExpression", plain, *environment.MESSAGE)
        self._annotations = steps(parts(spec, "auditAnnotations"), "valueExpression", known, *environment.ANNOTATION)

    def denials(
        self, admission: Admission, asked: Resource, taken: Resource, parameter: JsonObject | None
    ) -> tuple[list[Denial], list[Denial]]:
        """Return the denials, and the errors of audit annotations.

        A denial causes the actions of the binding, such as ``Warn``. An error causes a refusal, whatever those actions are.
        """
        known = inputs(admission, asked, taken, parameter)
        asking = {**known, **authorizers(admission)}
        try:
            if not self._conditions.hold({**asking, environment.NAMESPACE: None}):
                return [], []
            outcomes, left = evaluated(self._steps, self._variables, asking, BUDGET)
        except (OutOfBudgetError, ConditionError) as error:
            return self._failed(str(error)), []
        try:
            messages, _ = evaluated(self._messages, self._variables, known, left)
            unsaid = ""
        except OutOfBudgetError as error:
            messages, unsaid = [], f"failed messageExpression: {error}"
        found: list[Denial] = []
        for index, outcome in enumerate(outcomes):
            failure = (outcome.error if outcome else "") or unsaid
            if failure:
                found += self._failed(failure)
            elif outcome is not None and outcome.value is not True:
                said = messages[index] if index < len(messages) else None
                found.append(self._denied(index, said))
        try:
            annotations, _ = evaluated(self._annotations, self._variables, known, BUDGET)
        except OutOfBudgetError as error:
            return self._failed(str(error)), []
        errors = [outcome.error for outcome in annotations if outcome is not None and outcome.error]
        return found, [denial for error in errors for denial in self._failed(error)]

    def _failed(self, why: str) -> list[Denial]:
        """Return the denial for an expression that cannot be evaluated: none if the failure policy is ``Ignore``."""
        return [Denial(why)] if self.strict else []

    def _denied(self, index: int, said: Outcome | None) -> Denial:
        validation = self._validations[index]
        value = said.value if said is not None and not said.error else None
        message = value.strip() if isinstance(value, str) else ""
        if len(message.encode(errors="replace")) > MESSAGE_BYTES or "\n" in message:
            message = ""
        message = message or text(validation, "message").strip()
        message = message or f"failed expression: {text(validation, 'expression').strip()}"
        return Denial(message, text(validation, "reason") or "Invalid")


def enforce(
    admission: Admission, catalog: Catalog, bound: Sequence[tuple[CompiledPolicy, Sequence[JsonObject]]]
) -> None:
    """Evaluate each policy for all of its bindings, and add the warnings. Raises StatusError if a policy refuses the request."""
    asked = resource_of(admission)
    if asked is None:
        return
    refused: list[status.StatusError] = []
    for policy, bindings in bound:
        taken = matched(match_of(policy.policy, "matchConstraints") or {}, admission, asked, catalog)
        if taken is None:
            continue
        try:
            served = parameter_kind(policy.policy, catalog)
        except ConfigurationError as error:
            refused += _misconfigured(admission, policy, "", f"failed to configure policy: {error}")
            continue
        for binding in bindings:
            match = match_of(binding, "matchResources")
            if match is not None and matched(match, admission, asked, catalog) is None:
                continue
            name = text(binding, "metadata", "name")
            try:
                found = parameters(served, binding, namespace_of(admission), admission.view)
            except ConfigurationError as error:
                refused += _misconfigured(admission, policy, name, f"failed to configure binding: {error}")
                continue
            for parameter in found:
                denials, errors = policy.denials(admission, asked, taken, parameter)
                refused += _refusals_and_warnings(admission, policy, binding, denials)
                refused += [_refusal(admission, policy, name, denial) for denial in errors]
    if refused:
        raise refused[0]


def _misconfigured(admission: Admission, policy: CompiledPolicy, binding: str, why: str) -> list[status.StatusError]:
    return [_refusal(admission, policy, binding, Denial(why))] if policy.strict else []


def _refusals_and_warnings(
    admission: Admission, policy: CompiledPolicy, binding: JsonObject, denials: Sequence[Denial]
) -> list[status.StatusError]:
    """Return the refusals if the binding's actions include ``Deny``, and add warnings if they include ``Warn``.

    ``Audit`` has no effect, because there is no audit log.
    """
    name, actions = text(binding, "metadata", "name"), texts(binding, "spec", "validationActions")
    refused: list[status.StatusError] = []
    for denial in denials:
        if "Deny" in actions:
            refused.append(_refusal(admission, policy, name, denial))
        if "Warn" in actions:
            where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{name}'"
            admission.warnings.append(f"Validation failed for {where}: {denial.message}")
    return refused


def _refusal(admission: Admission, policy: CompiledPolicy, binding: str, denial: Denial) -> status.StatusError:
    where = f" with binding '{binding}'" if binding else ""
    why = f"ValidatingAdmissionPolicy '{policy.name}'{where} denied request: {denial.message}"
    error = status.forbidden(admission.kind, admission.name or "Unknown", why)
    details: JsonObject = {**(error.details or {}), "causes": [{"message": why}]}
    return status.StatusError(_CODES.get(denial.reason, 422), denial.reason, error.message, details)
