"""Messages of API servers about apply conflicts, and the fields that are read from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.fields.conflicts import (
    MAX_CONFLICTS,
    FieldConflict,
    FieldConflictError,
    has_field,
    read_conflicts,
    without_fields,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType

KEY = ObjectKey(ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True), "prod", "a")
POD: JsonObject = {
    "metadata": {"annotations": {"example.test/a": "1", "example": "2"}, "finalizers": ["x.y/z", "w"]},
    "spec": {
        "replicas": 3,
        "containers": [
            {"name": "main", "image": "a", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]},
            {"name": "si]de", "image": "b", "args": ["x"]},
        ],
    },
}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            'apply ConfigMap prod/a: Apply failed with 1 conflict: conflict with "ann": .data.v',
            [FieldConflict("ann", ".data.v")],
        ),
        (
            'Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas',
            [FieldConflict("kubectl-edit", ".spec.replicas")],
        ),
        (
            (
                'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1 at '
                "2026-01-01T00:00:00Z: .spec.replicas"
            ),
            [FieldConflict("hpa", ".spec.replicas")],
        ),
        (
            (
                'Apply failed with 3 conflicts: conflicts with "a":\n- .data.v\n- .data.w\n'
                'conflicts with "b \\"x\\"" using v1 at 2026-01-01T00:00:00Z:\n- .spec.containers[name="main"].image'
            ),
            [
                FieldConflict("a", ".data.v"),
                FieldConflict("a", ".data.w"),
                FieldConflict('b "x"', '.spec.containers[name="main"].image'),
            ],
        ),
        ('conflict with "somebody", who does not say of what', [FieldConflict("somebody", "")]),
        ("the object has been modified; please apply your changes to the latest version", []),
        ("", []),
    ],
)
def test_conflicts_are_read_from_the_message(message: str, found: list[FieldConflict]) -> None:
    assert list(read_conflicts(message)) == found


def test_the_number_of_conflicts_read_is_bounded() -> None:
    message = 'conflicts with "a":\n' + "- .data.v\n" * 5000
    assert len(read_conflicts(message)) == MAX_CONFLICTS


@given(st.text(max_size=200))
def test_any_message_text_is_accepted(text: str) -> None:
    read_conflicts(text)
    read_conflicts(f'conflict with "{text}": .{text}')
    has_field(POD, text)
    assert isinstance(without_fields(POD, [text, f".spec{text}", f".spec.containers[{text}"]), dict)


@pytest.mark.parametrize(
    "path",
    [
        ".metadata.annotations.example.test/a",
        ".metadata.annotations.example",
        ".metadata.annotations",
        '.metadata.finalizers[="x.y/z"]',
        ".spec.replicas",
        '.spec.containers[name="main"]',
        '.spec.containers[name="main"].image',
        '.spec.containers[name="si]de"].args',
        '.spec.containers[name="main"].ports[containerPort=53,protocol="UDP"]',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].containerPort',
        ".spec.containers[1].args[0]",
    ],
)
def test_existing_fields_are_found(path: str) -> None:
    assert has_field(POD, path)


@pytest.mark.parametrize(
    "path",
    [
        ".metadata.annotations.example.test",
        ".metadata.annotations.example.other",
        ".metadata.labels",
        '.metadata.finalizers[="q"]',
        ".spec.replicas.x",
        '.spec.containers[name="other"]',
        '.spec.containers[name="main",other="x"]',
        ".spec.containers[name=main]",
        ".spec.containers[]",
        ".spec.containers[7]",
        ".spec.containers[name",
        '.spec.containers[name="main"].ports[containerPort=80,protocol="UDP"]',
        '.spec.containers[1].args[name="x"]',
        ".spec[0]",
        "spec",
    ],
)
def test_missing_fields_are_not_found(path: str) -> None:
    assert not has_field(POD, path)


def test_fields_are_removed_from_a_copy() -> None:
    less = without_fields(
        POD,
        [
            ".metadata.annotations.example.test/a",
            '.metadata.finalizers[="x.y/z"]',
            '.metadata.finalizers[="w"]',
            '.spec.containers[name="main"].image',
            '.spec.containers[name="si]de"]',
            ".nothing",
        ],
    )
    assert less == {
        "metadata": {"annotations": {"example": "2"}, "finalizers": []},
        "spec": {
            "replicas": 3,
            "containers": [
                {"name": "main", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}
            ],
        },
    }
    assert has_field(POD, ".metadata.annotations.example.test/a")
    assert without_fields(POD, [""]) is POD


def test_the_error_names_object_field_and_owner() -> None:
    many = tuple(FieldConflict("bob", f".data.{number}") for number in range(7))
    error = FieldConflictError(KEY, (FieldConflict("ann", ".data.v"), FieldConflict("cy", ""), *many))
    assert not error.transient
    assert error.message == (
        "ConfigMap prod/a: .data.v belongs to 'ann'; .data.0, .data.1, .data.2, .data.3, .data.4 and 2 more belong to "
        "'bob'; a field belongs to 'cy'; remove the field from the chart, stop the other manager from setting it, or name it in "
        "spec.drift.ignore"
    )
