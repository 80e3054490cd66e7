import pytest

from tests.control_plane.support.bench import new_backend
from tests.control_plane.support.policy_asking import stored
from wharfinger.control_plane.admission.parameters import ConfigurationError, parameter_kind, parameters
from wharfinger.formats.json.value import JsonObject, find_str

BY_NAME: JsonObject = {"name": "a", "parameterNotFoundAction": "Deny"}
MAP: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"a": "b"}}}
MAPS: JsonObject = {"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}
ROLES: JsonObject = {"spec": {"paramKind": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}}}


@pytest.mark.parametrize(
    ("reference", "namespace", "names"),
    [
        (None, "default", [None]),
        (BY_NAME, "default", ["a"]),
        ({**BY_NAME, "name": "b", "parameterNotFoundAction": "Allow"}, "default", []),
        ({**BY_NAME, "namespace": "default"}, "", ["a"]),
        ({"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}, "default", ["a"]),
        ({"selector": {"matchLabels": {"a": "c"}}, "parameterNotFoundAction": "Allow"}, "default", []),
    ],
)
def test_bindings_select_parameters_by_name_or_selector(
    reference: JsonObject | None, namespace: str, names: list[str | None]
) -> None:
    backend = new_backend()
    stored(
        backend,
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"a": "b"}}},
        group="",
    )
    served = parameter_kind(MAPS, backend.catalog)

    found = parameters(served, {"spec": {"paramRef": reference}}, namespace, backend)

    assert [None if item is None else find_str(item, "metadata", "name") for item in found] == names


@pytest.mark.parametrize(
    ("policy", "reference", "namespace", "said"),
    [
        (MAPS, {**BY_NAME, "name": "b"}, "default", "no params found"),
        (MAPS, BY_NAME, "", "cannot use namespaced paramRef"),
        (ROLES, {**BY_NAME, "namespace": "default"}, "default", "paramRef.namespace must not be provided"),
    ],
)
def test_invalid_parameter_references_are_configuration_errors(
    policy: JsonObject, reference: JsonObject, namespace: str, said: str
) -> None:
    backend = new_backend()
    served = parameter_kind(policy, backend.catalog)

    with pytest.raises(ConfigurationError, match=said):
        parameters(served, {"spec": {"paramRef": reference}}, namespace, backend)


def test_an_unserved_parameter_kind_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"paramKind: 'example\.com/v1, Kind=A'"):
        parameter_kind({"spec": {"paramKind": {"apiVersion": "example.com/v1", "kind": "A"}}}, new_backend().catalog)
    assert parameter_kind({"spec": {}}, new_backend().catalog) is None
