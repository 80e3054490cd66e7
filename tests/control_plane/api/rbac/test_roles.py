import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.rbac.roles import (
    GROUP,
    ROLE_RULES,
    cluster_role_binding_errors,
    cluster_role_errors,
    role_binding_errors,
    role_errors,
)
from wharfinger.formats.json.value import JsonObject

PODS: JsonObject = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
URLS: JsonObject = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
REFERENCE: JsonObject = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "a"}


@pytest.mark.parametrize(
    ("rule", "in_role", "in_cluster_role"),
    [
        (PODS, [], []),
        (URLS, ["rules[0].nonResourceURLs"], []),
        ({**URLS, **PODS}, ["rules[0].nonResourceURLs"] * 2, ["rules[0].nonResourceURLs"]),
        ({}, ["rules[0].verbs", "rules[0].apiGroups", "rules[0].resources"],
         ["rules[0].verbs", "rules[0].apiGroups", "rules[0].resources"]),
    ],
)  # fmt: skip
def test_invalid_policy_rules_are_reported(rule: JsonObject, in_role: list[str], in_cluster_role: list[str]) -> None:
    assert [error.field for error in role_errors({"rules": [rule]})] == in_role
    assert [error.field for error in cluster_role_errors({"rules": [rule]})] == in_cluster_role


def test_aggregation_rules_need_a_selector() -> None:
    assert cluster_role_errors({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}) == []
    (error,) = cluster_role_errors({"aggregationRule": {}})
    assert str(error).endswith("at least one clusterRoleSelector required if aggregationRule is non-nil")


@pytest.mark.parametrize(
    ("subject", "fields"),
    [
        ({"kind": "ServiceAccount", "name": "a", "namespace": "b"}, []),
        ({"kind": "ServiceAccount", "name": "A", "namespace": "b"}, ["subjects[0].name"]),
        ({"kind": "ServiceAccount", "name": "a", "apiGroup": GROUP, "namespace": "b"}, ["subjects[0].apiGroup"]),
        ({"kind": "User", "name": "A:b", "apiGroup": GROUP}, []),
        ({"kind": "Group", "name": "a", "apiGroup": "x"}, ["subjects[0].apiGroup"]),
        ({"kind": "Robot"}, ["subjects[0].name", "subjects[0].kind"]),
    ],
)
def test_invalid_subjects_are_reported(subject: JsonObject, fields: list[str]) -> None:
    binding: JsonObject = {"roleRef": REFERENCE, "subjects": [subject]}

    assert [error.field for error in role_binding_errors(binding)] == fields
    assert [error.field for error in cluster_role_binding_errors(binding)] == fields


def test_cluster_role_bindings_are_stricter_than_role_bindings() -> None:
    accounts: JsonObject = {"roleRef": REFERENCE, "subjects": [{"kind": "ServiceAccount", "name": "a"}]}
    assert role_binding_errors(accounts) == []
    assert [error.field for error in cluster_role_binding_errors(accounts)] == ["subjects[0].namespace"]
    role: JsonObject = {"roleRef": {**REFERENCE, "kind": "Role"}}
    assert role_binding_errors(role) == []
    assert [error.field for error in cluster_role_binding_errors(role)] == ["roleRef.kind"]


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_the_role_of_a_binding_is_immutable(kind: str) -> None:
    old: JsonObject = {"roleRef": REFERENCE}
    (error,) = ROLE_RULES[f"{kind}.{GROUP}"].update({"roleRef": {**REFERENCE, "name": "b"}}, old)

    assert (
        error.message
        == f'Invalid value: {{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"b"}}: cannot change roleRef'
    )


@given(shapes("rules", "verbs", "roleRef", "subjects", "kind", "aggregationRule", "clusterRoleSelectors"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    for rules in ROLE_RULES.values():
        rules.create(obj)
        rules.update(obj, {})
