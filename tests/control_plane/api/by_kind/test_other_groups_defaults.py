import pytest

from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.api.by_kind.other_groups_defaults import GROUP_DEFAULTS
from wharfinger.formats.json.value import JsonObject, JsonValue, find

RBAC = "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("version", "kind", "given", "path", "value"),
    [
        ("networking.k8s.io/v1", "NetworkPolicy", {}, ("spec", "policyTypes"), ["Ingress"]),
        ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"egress": [{}]}}, ("spec", "policyTypes"),
         ["Ingress", "Egress"]),
        ("networking.k8s.io/v1", "IngressClass", {"spec": {"parameters": {"name": "a"}}},
         ("spec", "parameters", "scope"), "Cluster"),
        ("scheduling.k8s.io/v1", "PriorityClass", {}, ("preemptionPolicy",), "PreemptLowerPriority"),
        ("storage.k8s.io/v1", "StorageClass", {"reclaimPolicy": "Retain"}, ("reclaimPolicy",), "Retain"),
        ("storage.k8s.io/v1", "StorageClass", {}, ("volumeBindingMode",), "Immediate"),
        (f"{RBAC}/v1", "RoleBinding", {}, ("roleRef", "apiGroup"), RBAC),
        ("apiregistration.k8s.io/v1", "APIService", {"spec": {"service": {}}}, ("spec", "service", "port"), 443),
        ("storage.k8s.io/v1", "CSIDriver", {}, ("spec", "fsGroupPolicy"), "ReadWriteOnceWithFSType"),
        ("storage.k8s.io/v1", "CSIDriver", {"spec": {"attachRequired": False}}, ("spec", "attachRequired"), False),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", {}, ("spec", "failurePolicy"), "Fail"),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", {}, ("spec", "matchingPrecedence"), 1000),
    ],
)  # fmt: skip
def test_objects_of_other_groups_get_defaults(
    version: str, kind: str, given: JsonObject, path: tuple[str, ...], value: object
) -> None:
    once = apply_defaults({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **given})

    assert find(once, *path) == value
    assert apply_defaults(once) == once


def test_accounts_have_no_group() -> None:
    subjects: JsonObject = {"subjects": [{"kind": "ServiceAccount"}, {"kind": "Group"}]}
    binding = apply_defaults({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {}, **subjects})

    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": ""},
        {"kind": "Group", "apiGroup": RBAC, "name": ""},
    ]


@pytest.mark.parametrize("key", sorted(GROUP_DEFAULTS))
def test_values_of_wrong_types_do_not_crash(key: tuple[str, str]) -> None:
    shapes: list[JsonValue] = [None, [], {}, "", 5]
    for odd in shapes:
        GROUP_DEFAULTS[key]({"kind": key[1], "spec": odd, "webhooks": [odd], "ports": odd, "subjects": odd})
