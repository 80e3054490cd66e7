"""Checks of the whole schema of a version of a CustomResourceDefinition."""

from wharfinger.control_plane.api.apiextensions.whole_schema import Asked, whole_errors


def test_a_non_structural_schema_is_refused() -> None:
    errors = whole_errors({"type": "object", "$schema": "x"}, "s", Asked(), has_status=True)
    assert any("not supported" in str(error) or "fields are allowed" in str(error) for error in errors)
    assert Asked().unchanged().lenient.rule_costs
