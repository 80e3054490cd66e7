import pytest

from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.catalog.custom_kinds import (
    check_definition,
    created_status,
    kind_of_definition,
    updated_status,
    version_rank,
)
from wharfinger.control_plane.kinds.kind import ScalePaths
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError


def test_a_definition_becomes_a_custom_kind() -> None:
    kind = kind_of_definition(
        definition(
            subresources={
                "status": {},
                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
            },
            selectableFields=[{"jsonPath": ".spec.color"}],
        )
    )

    assert (kind.group_kind, kind.plural, kind.list_kind, kind.custom) == (
        "Widget.example.com",
        "widgets",
        "WidgetList",
        True,
    )
    assert kind.versions[0].status
    assert kind.versions[0].scale == ScalePaths(".spec.replicas", ".status.replicas", "")
    assert kind.versions[0].selectable == ("spec.color",)
    assert kind.storage_version == "v1"


@pytest.mark.parametrize(
    "version", [{"schema": {"openAPIV3Schema": 5}}, {"subresources": {"scale": 5}}, {"additionalPrinterColumns": [1]}]
)
def test_malformed_definitions_are_refused(version: dict[str, JsonValue]) -> None:
    with pytest.raises(ShapeError):
        kind_of_definition(definition(**version))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"spec": 5}},
        {"properties": {"spec": {"type": 5}}},
        {"properties": {"spec": {"type": "array", "items": 5}}},
        {"properties": {"spec": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": 7}}}}},
    ],
)
def test_errors_in_nested_schemas_are_found(schema: JsonValue) -> None:
    with pytest.raises(ShapeError):
        check_definition(definition(schema={"openAPIV3Schema": schema}))


def test_a_valid_definition_is_accepted() -> None:
    check_definition(definition())


def test_a_kind_has_only_served_versions_in_order_of_preference() -> None:
    obj = definition()
    obj["spec"]["versions"] = [  # type: ignore[index, call-overload]
        {"name": name, "served": name != "v3", "storage": name == "v1"} for name in ("v1alpha1", "v3", "v1", "v1beta2")
    ]

    assert [version.name for version in kind_of_definition(obj).versions] == ["v1", "v1beta2", "v1alpha1"]


def test_versions_are_ranked_by_stability_and_number() -> None:
    names = ["v11alpha2", "foo1", "v3beta1", "v12alpha1", "v2", "v10", "v11beta2", "v1", "v10beta3"]

    ordered = sorted(names, key=version_rank, reverse=True)

    assert ordered == ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1"]


def test_deprecated_versions_have_a_warning() -> None:
    obj = definition()
    obj["spec"]["versions"] = [  # type: ignore[index, call-overload]
        {"name": "v2", "served": True, "storage": True},
        {"name": "v1", "served": True, "deprecated": True},
        {"name": "v1beta1", "served": True, "deprecated": True, "deprecationWarning": "do not"},
    ]

    warnings = [version.warning for version in kind_of_definition(obj).versions]

    assert warnings == ["", "example.com/v1 Widget is deprecated; use example.com/v2 Widget", "do not"]


@pytest.mark.parametrize(
    ("kind", "path", "shown"),
    [
        ("integer", ".spec.size", 3),
        ("integer", ".spec.color", None),
        ("integer", ".spec.on", None),
        ("number", ".spec.size", 3),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.size", None),
        ("string", ".spec.color", "red"),
        ("string", ".spec.size", "3"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.list", "[1]"),
        ("string", ".spec.nothing", None),
        ("string", ".spec.absent", None),
        ("date", ".spec.since", "10s"),
        ("date", ".spec.size", None),
    ],
)
def test_printer_columns_show_values_of_their_type(kind: str, path: str, shown: JsonValue) -> None:
    columns: JsonValue = [{"name": "X", "type": kind, "jsonPath": path, "priority": 1}]
    version = kind_of_definition(definition(additionalPrinterColumns=columns)).versions[0]
    obj: JsonObject = {
        "spec": {"size": 3, "on": True, "color": "red", "list": [1], "nothing": None, "since": "2026-11-21T03:59:50Z"}
    }

    column = version.columns[1]

    assert (column.name, column.priority, column.cell(obj, NOW)) == ("X", 1, shown)


def test_default_columns_are_name_and_age() -> None:
    columns = kind_of_definition(definition()).versions[0].columns

    assert [column.name for column in columns] == ["Name", "Age"]


def test_a_column_with_an_invalid_path_is_omitted() -> None:
    version = kind_of_definition(definition(additionalPrinterColumns=[{"name": "X", "jsonPath": "nonsense"}])).versions[
        0
    ]

    assert [column.name for column in version.columns] == ["Name", "Age"]


def test_a_created_definition_has_a_status() -> None:
    obj = {**definition(), "status": created_status(definition())}
    assert obj["status"] == {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}


def test_stored_versions_are_retained() -> None:
    obj = definition()
    obj["status"] = {"storedVersions": ["v1alpha1"]}

    assert updated_status(obj)["storedVersions"] == ["v1alpha1", "v1"]
