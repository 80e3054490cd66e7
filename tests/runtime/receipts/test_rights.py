"""Rights and roles that are derived from recorded requests."""

import json
from dataclasses import replace

import yaml

from wharfinger.kube.access_rules import Access, JudgedRequest
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.runtime.receipts.rights import (
    Grant,
    Part,
    all_names,
    grant_of,
    granted_by,
    grown,
    named,
    needed,
    objects_of,
    refused,
    rule_lines,
    single_rules,
    without,
)

USER = "system:serviceaccount:shop:package"
GET = Access("", "configmaps", "get", "shop")
APPLY = Access("apps", "deployments", "patch", "shop")


def request(access: Access, code: int = 200, user: str = USER, message: str = "") -> JudgedRequest:
    return JudgedRequest(user, "wharfinger/1", access, "a", code, message)


def test_needed_rights_are_the_allowed_requests_of_the_account() -> None:
    requests = [
        request(GET, 404),
        request(APPLY, 201),
        request(Access("", "secrets", "get", "shop"), 403),
        request(Access("", "nodes", "list"), user="admin"),
        request(Access("authorization.k8s.io", "selfsubjectaccessreviews", "create"), 201),
        request(Access("", "", "get", path="/api")),
    ]
    assert needed(requests, USER) == {GET, APPLY, Access("apps", "deployments", "create", "shop")}
    assert refused(requests, USER) == (requests[2],)


def test_resources_with_the_same_verbs_are_in_one_rule() -> None:
    accesses = [GET, Access("", "secrets", "get", "shop"), Access("", "pods", "exec-like", "b"), APPLY]
    assert yaml.safe_load("\n".join(rule_lines(accesses))) == [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["exec-like"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"]},
    ]


def test_names_restrict_rules_unless_one_request_is_for_any_object() -> None:
    read, every = request(GET), JudgedRequest(USER, "wharfinger/1", Access("", "configmaps", "list", "shop"), "", 200)
    made = JudgedRequest(USER, "wharfinger/1", APPLY, "web", 201)
    names = named([read, replace(read, name="b"), every, made], USER)
    assert names == {GET: frozenset({"a", "b"}), APPLY: frozenset({"web"})}
    rights = {Part.PACKAGE: frozenset({GET, APPLY}), Part.HOOKS: frozenset({APPLY})}
    assert all_names(rights, {Part.PACKAGE: names}) == {GET: frozenset({"a", "b"})}
    grant = grant_of(rights, {"shop"}, all_names(rights, {Part.PACKAGE: names}))
    rules = objects_of(grant, ServiceAccount("shop", "package"))[0]["rules"]
    assert rules == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["a", "b"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"]},
    ]
    assert yaml.safe_load("\n".join(rule_lines([GET, APPLY], names)))[0]["resourceNames"] == ["a", "b"]
    many = [replace(read, name=f"n{number}") for number in range(51)]
    assert named(many, USER) == {}


def test_accesses_to_unknown_namespaces_are_in_the_cluster_role() -> None:
    other, cluster = Access("", "pods", "get", "made-by-the-package"), Access("", "nodes", "get")
    grant = grant_of({Part.PACKAGE: frozenset({GET, other}), Part.REMOVAL: frozenset({cluster})}, {"shop"})
    assert grant == Grant({"shop": frozenset({GET}), "": frozenset({other, cluster})})
    objects = objects_of(grant, ServiceAccount("shop", "package"))
    assert [obj["kind"] for obj in objects] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert objects[2]["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    assert objects[3]["subjects"] == [{"kind": "ServiceAccount", "name": "package", "namespace": "shop"}]


def test_a_rule_is_removed_from_a_grant() -> None:
    patch = Access("", "configmaps", "patch", "shop")
    grant = Grant({"shop": frozenset({GET, patch})})
    assert single_rules(grant) == [("shop", GET), ("shop", patch)]
    assert without(grant, "shop", GET) == Grant({"shop": frozenset({patch})})


def test_a_refused_role_names_the_rights_that_it_grants() -> None:
    said = (
        'roles "r" is forbidden: user "x" (groups=["a"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["web"], Verbs:["patch"]}'
    )
    write = Access("rbac.authorization.k8s.io", "roles", "patch", "shop")
    assert granted_by(request(write, 403, message=json.dumps({"message": said}))) == {
        Access("", "pods", "get", "shop"),
        Access("", "pods", "list", "shop"),
        APPLY,
    }
    assert granted_by(request(write, 403, message=json.dumps({"message": "quota"}))) == frozenset()
    assert granted_by(request(write, 403, message="no JSON")) == frozenset()


def test_added_rights_are_reported_by_part() -> None:
    old = {Part.PACKAGE: frozenset({GET})}
    new = {Part.PACKAGE: frozenset({GET}), Part.HOOKS: frozenset({GET, APPLY})}
    assert grown(old, new) == {Part.HOOKS: {GET, APPLY}}
    assert grown(new, old) == {}
