from wharfinger.control_plane.api.admissionregistration.expression_environment import CONFIGURATION
from wharfinger.control_plane.api.admissionregistration.expressions import Compiler, condition_refusal, own_text


def test_a_variable_is_declared_for_later_variables() -> None:
    compiler = Compiler({"paramKind": {}})

    assert "undefined field 'a'" in compiler.validation("variables.a == 1")
    assert compiler.variable("a", "params.x == 'x'") == ""
    assert compiler.variable("b", "1 +") != ""
    assert [compiler.validation(text) for text in ("variables.a", "variables.b")] == [
        "", "must evaluate to bool but got dyn",
    ]  # fmt: skip
    assert compiler.message("string(variables.b)") == compiler.annotation("null") == ""
    assert compiler.mutation("Object{}", CONFIGURATION) == ""


def test_variables_are_undeclared_without_composition() -> None:
    compiler = Compiler({}, composition=False)

    assert compiler.variable("a", "true") == ""
    assert "undeclared reference to 'variables'" in compiler.validation("variables.a")


def test_conditions_may_use_parameters_only_if_declared() -> None:
    assert condition_refusal("params == null", params=True) == ""
    assert "undeclared reference to 'params'" in condition_refusal("params == null", params=False)
    assert own_text({"a": "  b\n"}, "a") == "b"
