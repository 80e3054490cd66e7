"""Changes that a reviewer must not overlook, such as lost data, refused updates and additional rights."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.output.comparison import ObjectChange
from wharfinger.offline.output.dangers import dangers_of
from wharfinger.offline.store.identity import object_id

RBAC = "rbac.authorization.k8s.io/v1"


def obj(api_version: str, kind: str, **fields: JsonValue) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}, **fields}


def dangers(before: JsonObject | None, after: JsonObject | None) -> tuple[str, ...]:
    who = object_id(after if after is not None else before or {})
    return dangers_of((ObjectChange(who, before, after),))


@pytest.mark.parametrize(
    ("api_version", "kind", "dangerous"),
    [
        ("v1", "PersistentVolumeClaim", True),
        ("v1", "Namespace", True),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", True),
        ("apps/v1", "StatefulSet", True),
        ("v1", "ConfigMap", False),
    ],
)
def test_deletions_of_critical_kinds_are_dangerous(api_version: str, kind: str, *, dangerous: bool) -> None:
    assert bool(dangers(obj(api_version, kind), None)) is dangerous
    assert dangers(None, obj(api_version, kind)) == ()


def test_changes_of_immutable_fields_are_dangerous() -> None:
    one, other = (obj("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": each}}}) for each in "bc")
    assert dangers(one, other) == (
        "Deployment n/x: spec.selector cannot be changed; the object has to be deleted and created again",
    )
    assert dangers(one, {**one, "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}}}) == ()


def test_growing_rights_of_roles_are_dangerous() -> None:
    def role(*verbs: str) -> JsonObject:
        rule: JsonObject = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": [*verbs]}
        return obj(RBAC, "ClusterRole", rules=[rule])

    assert dangers(role("get"), role("get", "delete")) == ("ClusterRole x gets more rights: delete deployments.apps",)
    assert dangers(role("get", "delete"), role("get")) == ()
    assert dangers(None, role("*")) == ("ClusterRole x gets more rights: * deployments.apps",)


def test_new_subjects_of_bindings_are_dangerous() -> None:
    def binding(*names: str) -> JsonObject:
        subjects: list[JsonValue] = [{"kind": "User", "name": name} for name in names]
        return obj(RBAC, "RoleBinding", roleRef={"name": "admin"}, subjects=subjects)

    assert dangers(binding("a"), binding("a", "b")) == ("RoleBinding n/x grants admin to User b",)


@pytest.mark.parametrize("kind", ["Role", "RoleBinding"])
def test_malformed_rights_are_ignored(kind: str) -> None:
    wrong = obj(RBAC, kind, rules={}, subjects="x", roleRef=[])
    assert dangers(None, wrong) == ()
