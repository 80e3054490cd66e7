"""The check that the schema of a CustomResourceDefinition is structural."""

from wharfinger.control_plane.api.apiextensions.structure import conversion_problem, structure_errors


def test_non_structural_schemas_are_refused() -> None:
    assert conversion_problem({"properties": {"a": {"$ref": "x"}}}) == "OpenAPIV3Schema '$ref' is not supported"
    assert conversion_problem({"x-kubernetes-preserve-unknown-fields": False}).startswith("internal error")
    assert conversion_problem({"items": [{}]}) == "OpenAPIV3Schema 'items' must be a schema, but is an array"
    assert [str(error) for error in structure_errors({}, "x")] == [
        "x.type: Required value: must not be empty at the root"
    ]
