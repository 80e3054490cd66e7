import pytest

from wharfinger.control_plane.admission.evaluation import OutOfBudgetError, evaluated, step_of
from wharfinger.control_plane.api.admissionregistration.expression_environment import Environment
from wharfinger.control_plane.cel.values.documents import document_value
from wharfinger.control_plane.cel.values.types import BOOL, DYN

KNOWN = Environment(variables=(("a", DYN), ("b", DYN), ("c", DYN)))
VARIABLES = {name: step_of(text, KNOWN) for name, text in (("a", "object.x"), ("b", "variables.a + 1"), ("c", "1 +"))}


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("variables.b == 2", True, ""),
        ("dyn(variables).size() == 3 && has(variables.a)", True, ""),
        ("dyn(variables).all(k, k in ['a', 'b', 'c'])", True, ""),
        ("object.y", None, "expression 'object.y' resulted in error: no such key: y"),
        ("variables.c", None, 'composited variable "c" fails to compile: compilation failed'),
        ("1 +", None, "compilation error: compilation failed: ERROR"),
    ],
)  # fmt: skip
def test_expressions_return_values_or_errors_with_the_remaining_budget(text: str, value: object, error: str) -> None:
    [found], left = evaluated([step_of(text, KNOWN)], VARIABLES, {"object": document_value({"x": 1})}, 1000)

    assert found is not None
    assert found.value is value
    assert error in found.error
    assert 900 < left <= 1000


def test_a_variable_that_fails_is_reported_by_its_expression() -> None:
    [found, nothing], _ = evaluated(
        [step_of("variables.b", KNOWN), None], VARIABLES, {"object": document_value({})}, 1000
    )

    assert nothing is None
    assert found is not None
    assert found.error.endswith(
        'composited variable "b" fails to evaluate: composited variable "a" fails to evaluate: no such key: x'
    )


def test_an_expression_over_the_cost_budget_fails() -> None:
    steps = [step_of("variables.b == 2", KNOWN, BOOL)]

    with pytest.raises(OutOfBudgetError, match="running out of cost budget"):
        evaluated(steps, VARIABLES, {"object": document_value({"x": 1})}, 3)
