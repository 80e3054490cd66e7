"""The access rules that a client lacks, read from messages of the API server."""

import pytest
import yaml

from wharfinger.kube.access_rules import Access, JudgedRequest, Refusal, refusal_of, rule_line

ACCOUNT = "system:serviceaccount:shop:deployer"


@pytest.mark.parametrize(
    ("words", "access"),
    [
        (
            f'secrets "a" is forbidden: User "{ACCOUNT}" cannot get resource "secrets" in API group "" in the namespace "shop"',
            Access("", "secrets", "get", "shop"),
        ),
        (
            (
                f'clusterroles "x" is forbidden: User "{ACCOUNT}" cannot create resource "clusterroles" in API group '
                '"rbac.authorization.k8s.io" at the cluster scope: RBAC: role not found'
            ),
            Access("rbac.authorization.k8s.io", "clusterroles", "create"),
        ),
        (
            f'pods "a" is forbidden: User "{ACCOUNT}" cannot get resource "pods/log" in API group "" in the namespace "b"',
            Access("", "pods/log", "get", "b"),
        ),
        (f'forbidden: User "{ACCOUNT}" cannot get path "/metrics"', Access("", "", "get", path="/metrics")),
    ],
)
def test_a_refusal_names_the_access(words: str, access: Access) -> None:
    assert refusal_of(words) == Refusal(ACCOUNT, access)


def test_other_refusals_name_no_access() -> None:
    assert refusal_of('pods "a" is forbidden: exceeded quota: small, requested: pods=1') is None


def test_the_rule_of_a_remedy_can_be_pasted() -> None:
    words = Refusal(ACCOUNT, Access("apps", "deployments", "patch", "shop")).remedy()
    said, _, rule = words.partition(": ")
    assert said == "add this rule to a Role of the namespace shop that is bound to the ServiceAccount shop/deployer"
    assert yaml.safe_load(rule) == [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"]}]


def test_the_remedy_at_the_cluster_scope_is_a_cluster_role() -> None:
    words = Refusal("ann", Access("", "namespaces", "list")).remedy()
    assert "a ClusterRole that is bound to the user ann" in words


def test_a_refused_impersonation_has_the_remedy_to_allow_it() -> None:
    said = f'User "{ACCOUNT}" cannot impersonate-on:serviceaccount:get resource "configmaps" in API group "" in the namespace "a"'
    refusal = refusal_of(said)
    assert refusal is not None
    where, _, rule = refusal.remedy().partition(": ")
    assert where.startswith("add this rule to a ClusterRole ")
    assert yaml.safe_load(rule) == [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}]


def test_a_rule_for_the_core_group_and_for_a_path() -> None:
    assert yaml.safe_load(rule_line("", ("pods", "pods/log"), ("get", "list"))) == [
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}
    ]
    assert yaml.safe_load(Access("", "", "get", path="/metrics").rule()) == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]


def test_an_apply_that_created_its_object_needs_the_verb_create() -> None:
    apply, create = Access("", "pods", "patch", "a"), Access("", "pods", "create", "a")
    assert JudgedRequest("ann", "kubectl", apply, "x", 201).accesses() == (apply, create)
    assert JudgedRequest("ann", "kubectl", apply, "x", 200).accesses() == (apply,)


def test_an_apply_is_refused_for_the_creation_of_its_object() -> None:
    said = f'{{"message": "User \\"{ACCOUNT}\\" cannot create resource \\"pods\\" in API group \\"\\" in the namespace \\"a\\""}}'
    apply = Access("", "pods", "patch", "a")
    assert JudgedRequest(ACCOUNT, "", apply, "x", 403, said).refused() == Access("", "pods", "create", "a")
    assert JudgedRequest(ACCOUNT, "", apply, "x", 403, "quota").refused() == apply
