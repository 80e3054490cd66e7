"""The evaluation of MutatingAdmissionPolicies: each policy applies its mutations to the object, once for each binding and
parameter.

Policies are evaluated in the order of their names, before mutating webhooks, and each gets the object with the changes of the
previous ones. A policy with ``reinvocationPolicy: IfNeeded`` is evaluated a second time if another mutation may have changed the
object since. As in kube-apiserver, the next mutation is evaluated even if one has failed. After the last mutation, the request
is refused if a policy with the failure policy ``Fail`` had an error.

Source: kube-apiserver, ``apiserver/pkg/admission/plugin/policy/mutating``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.admission.conditions import ConditionError, Conditions
from wharfinger.control_plane.admission.evaluation import BUDGET, OutOfBudgetError, Step, evaluated, step_of
from wharfinger.control_plane.admission.inputs import authorizers, inputs
from wharfinger.control_plane.admission.matching import match_of, matched
from wharfinger.control_plane.admission.parameters import ConfigurationError, parameter_kind, parameters
from wharfinger.control_plane.admission.request import Resource, form_of, namespace_of, resource_of, seen
from wharfinger.control_plane.api.admissionregistration import expression_environment as environment
from wharfinger.control_plane.api.admissionregistration.expressions import Compiler
from wharfinger.control_plane.api.common.admission import Admission, Mutation
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.cel.values.made_objects import MadeError, document_of, misnamed
from wharfinger.control_plane.cel.values.values import MadeObject, Value
from wharfinger.control_plane.merging.apply_configuration import ConfigurationRefusedError, configured
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object
from wharfinger.kube.json_patch import JsonPatchError, JsonPatchFailedError, apply_json_patch

_APPLY: Final = "ApplyConfiguration"


class MutationError(Exception):
    """A mutation cannot be evaluated, or its result does not fit the object."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error of a policy. ``binding`` is "" if the error concerns all bindings.

    ``reason`` is the ``reason`` of the Status that the client gets.
    """

    policy: str
    binding: str
    message: str
    reason: str = "Forbidden"

    def __str__(self) -> str:
        """Return the message for the client."""
        who = f"policy '{self.policy}' with binding '{self.binding}'" if self.binding else f'policy "{self.policy}"'
        return f"{who} denied request: {self.message}"


class CompiledMutation:
    """A MutatingAdmissionPolicy with its compiled expressions."""

    def __init__(self, policy: JsonObject) -> None:
        self.policy = policy
        self.name = text(policy, "metadata", "name")
        spec = part(policy, "spec") or {}
        self.strict = text(spec, "failurePolicy") != "Ignore"
        self.again = text(spec, "reinvocationPolicy") == "IfNeeded"
        compiler = Compiler(spec)
        self._variables: dict[str, Step] = {}
        for variable in parts(spec, "variables"):
            name, expression = text(variable, "name"), text(variable, "expression")
            self._variables[name] = step_of(expression, compiler.environment())
            compiler.variable(name, expression)
        self._conditions = Conditions(spec, compiler.environment(), self._variables, strict=self.strict)
        making = compiler.environment(patches=True)
        self._mutations: list[tuple[bool, Step]] = []
        for mutation in parts(spec, "mutations"):
            applies = text(mutation, "patchType") == _APPLY
            own, wanted = (
                ("applyConfiguration", environment.CONFIGURATION) if applies else ("jsonPatch", environment.PATCHES)
            )
            self._mutations.append((applies, step_of(text(mutation, own, "expression"), making, wanted)))

    def concerns(self, admission: Admission, asked: Resource, taken: Resource, parameter: JsonObject | None) -> bool:
        """Return whether all match conditions of the policy hold for a write. Raises ConditionError and OutOfBudgetError."""
        known = {**inputs(admission, asked, taken, parameter), **authorizers(admission)}
        return self._conditions.hold({**known, environment.NAMESPACE: None})

    def mutate(
        self, admission: Admission, asked: Resource, taken: Resource, parameter: JsonObject | None, mutation: Mutation
    ) -> tuple[JsonObject | None, list[str], bool]:
        """Return the object after all mutations (None if the request has no object), the errors of the mutations, and whether
        at least one mutation was applied.
        """
        errors: list[str] = []
        done = False
        for applies, step in self._mutations:
            if admission.obj is None:
                continue
            try:
                changed = self._mutated(admission, asked, taken, parameter, step, applies=applies)
            except (MutationError, OutOfBudgetError) as error:
                errors.append(str(error))
                continue
            admission, done = admission.of(mutation.completed(taken.version.name, changed)), True
        return admission.obj, errors, done

    def _mutated(
        self,
        admission: Admission,
        asked: Resource,
        taken: Resource,
        parameter: JsonObject | None,
        step: Step,
        *,
        applies: bool,
    ) -> JsonObject:
        """Return the object after one mutation. Raises MutationError and OutOfBudgetError."""
        known = {**inputs(admission, asked, taken, parameter), **authorizers(admission)}
        (outcome,), _ = evaluated([step], self._variables, known, BUDGET)
        if outcome is None or outcome.error:
            raise MutationError(outcome.error if outcome is not None else "there is no expression")
        before = seen(admission, taken, admission.obj)
        if before is None:
            raise MutationError("there is no object to change")
        try:
            if applies:
                return _configured(before, outcome.value, form_of(admission) or taken)
            return _patched(before, outcome.value)
        except MadeError as error:
            raise MutationError(str(error)) from error


def _configured(before: JsonObject, value: Value, form: Resource) -> JsonObject:
    """Return the object with an apply configuration merged into it. Raises MutationError and MadeError."""
    if not isinstance(value, MadeObject):
        raise MutationError("unsupported return type from ApplyConfiguration expression")
    if wrong := misnamed(value):
        raise MutationError(f"type mismatch: {wrong}")
    configuration = as_object(document_of(value), "the apply configuration")
    own: JsonObject = {name: before[name] for name in ("apiVersion", "kind") if name in before}
    try:
        return configured(before, {**configuration, **own}, form.version.lists)
    except ConfigurationRefusedError as error:
        raise MutationError(f"error applying patch: {error}") from error


def _patched(before: JsonObject, value: Value) -> JsonObject:
    """Return the object with a JSON patch applied, or unchanged if a ``test`` fails. Raises MutationError and MadeError."""
    operations: list[JsonValue] = []
    for each in value if isinstance(value, list) else []:
        made = each.find("value")[1] if isinstance(each, MadeObject) else None
        if isinstance(made, MadeObject) and (wrong := misnamed(made)):
            raise MutationError(f"type mismatch: {wrong}")
        operations.append(document_of(each))
    try:
        return as_object(apply_json_patch(before, operations), "the patched object")
    except JsonPatchFailedError as error:
        if as_object(operations[error.index], "an operation").get("op") == "test":
            return before
        raise MutationError(f"JSONPath: {error}") from error
    except (JsonPatchError, ShapeError) as error:
        raise MutationError(f"JSONPath: {error}") from error


@dataclass(frozen=True, slots=True)
class _Invocation:
    """One evaluation of a policy: for one binding and one parameter."""

    policy: CompiledMutation
    binding: str
    taken: Resource
    parameter: JsonObject | None

    @property
    def key(self) -> str:
        """A key that identifies the invocation within one request."""
        parameter = [text(self.parameter, "metadata", name) for name in ("namespace", "name")] if self.parameter else []
        return " ".join((self.policy.name, self.binding, *parameter))


def mutate_by_policies(
    admission: Admission,
    catalog: Catalog,
    bound: Sequence[tuple[CompiledMutation, Sequence[JsonObject]]],
    mutation: Mutation,
) -> JsonObject | None:
    """Evaluate the matching policies in turn, and return the object as they changed it; None if the write has no object. Raises
    StatusError.
    """
    asked = resource_of(admission)
    if asked is None:
        return admission.obj
    if mutation.second and admission.obj != mutation.output:
        mutation.changed()
    troubles: list[tuple[CompiledMutation, Trouble]] = []
    invocations = _invocations(admission, asked, catalog, bound, troubles)
    dirty = False
    for each in invocations:
        policy = each.policy
        try:
            if not policy.concerns(admission, asked, each.taken, each.parameter):
                continue
        except (ConditionError, OutOfBudgetError) as error:
            troubles.append((policy, Trouble(policy.name, each.binding, str(error), "Invalid")))
            continue
        if mutation.second and each.key not in mutation.again:
            continue
        before = admission.obj
        after, errors, done = policy.mutate(admission, asked, each.taken, each.parameter, mutation)
        troubles += [(policy, Trouble(policy.name, each.binding, error, "Invalid")) for error in errors]
        dirty = dirty or done
        if after is not None and after != before:
            admission = admission.of(after)
            mutation.changed()
        if policy.again:
            mutation.called.add(each.key)
    if dirty:
        mutation.changed()
        mutation.wanted = True
    mutation.output = admission.obj
    _refuse(admission, [trouble for policy, trouble in troubles if policy.strict])
    return admission.obj


def _invocations(
    admission: Admission,
    asked: Resource,
    catalog: Catalog,
    bound: Sequence[tuple[CompiledMutation, Sequence[JsonObject]]],
    troubles: list[tuple[CompiledMutation, Trouble]],
) -> list[_Invocation]:
    """Return all evaluations that a request needs, and add the errors in policies and bindings to ``troubles``."""
    found: list[_Invocation] = []
    for policy, bindings in bound:
        taken = matched(match_of(policy.policy, "matchConstraints") or {}, admission, asked, catalog)
        if taken is None:
            continue
        try:
            served = parameter_kind(policy.policy, catalog)
        except ConfigurationError as error:
            troubles.append((policy, Trouble(policy.name, "", f"failed to configure policy: {error}")))
            continue
        for binding in bindings:
            match, name = match_of(binding, "matchResources"), text(binding, "metadata", "name")
            if match is not None and matched(match, admission, asked, catalog) is None:
                continue
            try:
                given = parameters(served, binding, namespace_of(admission), admission.view)
            except ConfigurationError as error:
                troubles.append((policy, Trouble(policy.name, name, f"failed to configure binding: {error}")))
                continue
            found += [_Invocation(policy, name, taken, parameter) for parameter in given]
    return found


def _refuse(admission: Admission, troubles: Sequence[Trouble]) -> None:
    """Raise StatusError with the message of the first trouble; the causes list all troubles."""
    if not troubles:
        return
    error = status.forbidden(admission.kind, admission.name or "Unknown", "")
    causes: list[JsonValue] = [{"message": str(each)} for each in troubles]
    details: JsonObject = {**(error.details or {}), "causes": causes}
    raise status.StatusError(403, troubles[0].reason, str(troubles[0]), details)
