import pytest
from msgspec.structs import replace

from tests.control_plane.support.bench import refused
from tests.control_plane.support.policy_asking import MATCH, asked
from wharfinger.control_plane.admission.evaluation import OutOfBudgetError
from wharfinger.control_plane.admission.validating import CompiledPolicy, Denial, enforce
from wharfinger.formats.json.value import JsonObject, JsonValue

BINDING: JsonObject = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
LONG = f"'{'x' * 600}'.replace('x', '{'y' * 10}')"
CHECK = "authorizer.path('/').check('get').allowed()"


def policy(*validations: str, **spec: JsonValue) -> CompiledPolicy:
    """Return a compiled validating policy with these validations."""
    said: list[JsonValue] = [{"expression": text} for text in validations]
    return CompiledPolicy({"metadata": {"name": "p"}, "spec": {"matchConstraints": MATCH, "validations": said, **spec}})


@pytest.mark.parametrize(
    ("spec", "denials"),
    [
        ({}, [Denial("failed expression: false")]),
        ({"validations": [{"expression": "false", "message": "m", "reason": "Forbidden"}]}, [Denial("m", "Forbidden")]),
        ({"validations": [{"expression": "object.a"}]},
         [Denial("compilation error: must evaluate to bool but got dyn")]),
        ({"validations": [{"expression": "object.a == 1"}]},
         [Denial("expression 'object.a == 1' resulted in error: no such key: a")]),
        ({"validations": [{"expression": "object.a == 1"}], "failurePolicy": "Ignore"}, []),
        ({"matchConditions": [{"name": "c", "expression": "false"}]}, []),
        ({"matchConditions": [{"name": "c", "expression": "object.a == 1"}, {"name": "d", "expression": "false"}]}, []),
        ({"matchConditions": [{"name": "c", "expression": "object.a == 1"}]},
         [Denial("expression 'object.a == 1' resulted in error: no such key: a")]),
        ({"matchConditions": [{"name": "c", "expression": "object.a == 1"}, {"name": "d", "expression": "object.b == 1"}]},
         [Denial("[expression 'object.a == 1' resulted in error: no such key: a, "
                 "expression 'object.b == 1' resulted in error: no such key: b]")]),
        ({"matchConditions": [{"name": "c", "expression": "object.a == 1"}], "failurePolicy": "Ignore"}, []),
        ({"matchConditions": [{"name": "c", "expression": "namespaceObject == null"}]},
         [Denial("failed expression: false")]),
        ({"validations": [{"expression": "false", "messageExpression": f"string(size({LONG}))"}]}, [Denial("6000")]),
        ({"validations": [{"expression": "false", "messageExpression": LONG}]},
         [Denial("failed expression: false")]),
    ],
)  # fmt: skip
def test_false_validations_are_denials(spec: JsonObject, denials: list[Denial]) -> None:
    admission, resource, _ = asked()

    assert policy("false", **spec).denials(admission, resource, resource, None) == (denials, [])


def test_conditions_over_the_cost_budget_follow_the_failure_policy() -> None:
    admission, resource, _ = asked()
    said = Denial(str(OutOfBudgetError()))

    conditions: list[JsonValue] = [{"name": f"c{index}", "expression": CHECK} for index in range(8)]
    strict = policy("false", matchConditions=conditions)
    lenient = policy("false", matchConditions=conditions, failurePolicy="Ignore")

    assert policy(*[CHECK] * 29).denials(admission, resource, resource, None) == ([said], [])
    assert strict.denials(admission, resource, resource, None) == ([said], [])
    assert lenient.denials(admission, resource, resource, None) == ([], [])
    [once], _ = policy(f"{CHECK} && {CHECK} && {CHECK}").denials(admission, resource, resource, None)
    assert once.message.endswith("operation cancelled: actual cost limit exceeded")


def test_failed_annotations_are_denials_with_any_action() -> None:
    admission, _, backend = asked()
    annotated = policy("true", auditAnnotations=[{"key": "a", "valueExpression": "string(object.a)"}])
    silent: JsonObject = {**BINDING, "spec": {"policyName": "p", "validationActions": ["Audit"]}}

    with refused(422, "Invalid", "expression 'string(object.a)' resulted in error: no such key: a"):
        enforce(admission, backend.catalog, [(annotated, [silent])])
    enforce(admission, backend.catalog, [(policy("false"), [silent])])


def test_the_first_denial_is_raised_and_all_warnings_are_sent() -> None:
    admission, _, backend = asked()
    warned: JsonObject = {"metadata": {"name": "w"}, "spec": {"policyName": "p", "validationActions": ["Warn"]}}
    first = policy("true", "false")

    with refused(
        422, "Invalid", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false"
    ):
        enforce(replace(admission, name=""), backend.catalog, [(first, [BINDING, warned])])
    assert admission.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'w': failed expression: false"
    ]


@pytest.mark.parametrize(("failure", "strict"), [("Fail", True), ("Ignore", False)])
def test_missing_parameters_follow_the_failure_policy(failure: str, strict: bool) -> None:
    admission, _, backend = asked()
    absent = policy("true", failurePolicy=failure, paramKind={"apiVersion": "example.com/v1", "kind": "A"})
    unknown = policy("true", failurePolicy=failure, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    reference: JsonObject = {"name": "nope", "parameterNotFoundAction": "Deny"}
    binding: JsonObject = {**BINDING, "spec": {"validationActions": ["Deny"], "paramRef": reference}}
    for wrong, said in (
        (absent, "failed to configure policy: failed to find"),
        (unknown, "failed to configure binding: no"),
    ):
        if strict:
            with refused(422, "Invalid", said):
                enforce(admission, backend.catalog, [(wrong, [binding])])
        else:
            enforce(admission, backend.catalog, [(wrong, [binding])])


def test_requests_that_do_not_match_are_not_evaluated() -> None:
    admission, _, backend = asked("secrets")
    elsewhere: JsonObject = {**BINDING, "spec": {"validationActions": ["Deny"], "matchResources": MATCH}}

    enforce(admission, backend.catalog, [(policy("false"), [BINDING])])
    anything: JsonObject = {**MATCH, "resourceRules": []}
    enforce(admission, backend.catalog, [(policy("false", matchConstraints=anything), [elsewhere])])
    enforce(
        replace(admission, version="v9"), backend.catalog, [(policy("false", matchConstraints=anything), [BINDING])]
    )
