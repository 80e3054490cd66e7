import pytest

from wharfinger.control_plane.verbs.null_lists import with_null_lists
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("where", "given", "stored"),
    [
        (("rbac.authorization.k8s.io", "v1", "Role"), {"rules": []}, {"rules": None}),
        (
            ("rbac.authorization.k8s.io", "v1", "Role"),
            {"rules": [{"verbs": []}, {"verbs": ["get"]}]},
            {"rules": [{"verbs": None}, {"verbs": ["get"]}]},
        ),
        (
            ("discovery.k8s.io", "v1", "EndpointSlice"),
            {"endpoints": [], "ports": []},
            {"endpoints": None, "ports": None},
        ),
        (("storage.k8s.io", "v1", "CSINode"), {"spec": {"drivers": []}}, {"spec": {"drivers": None}}),
        (
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            {"spec": {"versions": []}},
            {"spec": {"versions": []}},
        ),
        (("", "v1", "ConfigMap"), {"data": []}, {"data": []}),
        (("", "v1", "LimitRange"), {"spec": []}, {"spec": []}),
    ],
)
def test_empty_lists_that_are_always_printed_become_null(
    where: tuple[str, str, str], given: JsonObject, stored: JsonObject
) -> None:
    before = repr(given)

    assert with_null_lists(given, *where) == stored
    assert repr(given) == before


def test_an_unchanged_object_is_returned_itself() -> None:
    pod: JsonObject = {"spec": {"containers": [{"name": "a", "env": []}]}}

    assert with_null_lists(pod, "", "v1", "Pod") is pod
