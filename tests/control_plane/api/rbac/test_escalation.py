import pytest
from msgspec.structs import replace

from tests.control_plane.support.access_views import GROUP, View, binding, role
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.access.users import ADMINISTRATOR, User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.rbac.escalation import refuse_escalation
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject

ROLE = builtin(GROUP, "v1", "roles").kind
CLUSTER_ROLE = builtin(GROUP, "v1", "clusterroles").kind
BINDING = builtin(GROUP, "v1", "rolebindings").kind
JANE: JsonObject = {"kind": "User", "name": "jane"}
READ: JsonObject = {"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get", "list"]}


def admission(*stored: tuple[str, JsonObject], user: User | None = None) -> Admission:
    view = View([role("r", READ, namespace="a"), binding("b", "r", JANE, namespace="a"), *stored])
    who = user or User("jane", ("g",))
    return Admission(view, who, ROLE, Operation.CREATE, "", "a", "new", None, None)


def making(*rules: JsonObject) -> JsonObject:
    return {"metadata": {"name": "new", "namespace": "a"}, "rules": list(rules)}


def test_users_may_grant_permissions_that_they_have() -> None:
    held = making({**READ, "resources": ["pods", "things/scale"], "verbs": ["get"], "resourceNames": ["x"]})
    assert refuse_escalation(admission(), held) is held


def test_missing_permissions_are_listed() -> None:
    more = making(READ, {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "delete"]})
    with pytest.raises(StatusError) as refused:
        refuse_escalation(admission(), more)
    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=["g"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete"]}'
    )


def test_missing_permissions_are_listed_with_paths_and_names() -> None:
    paths = making(
        {"nonResourceURLs": ["/a"], "verbs": ["get"]}, {**READ, "resources": ["secrets"], "resourceNames": ["x"]}
    )
    with pytest.raises(StatusError) as refused:
        refuse_escalation(admission(), paths)
    assert '{NonResourceURLs:["/a"], Verbs:["get"]}' in refused.value.message
    assert 'ResourceNames:["x"]' in refused.value.message


def test_users_with_the_escalate_verb_may_grant_everything() -> None:
    all_of_it = making({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    escalate: JsonObject = {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"]}
    allowed = admission(role("e", escalate, namespace="a"), binding("e", "e", JANE, namespace="a"))

    assert refuse_escalation(allowed, all_of_it) is all_of_it
    assert refuse_escalation(admission(user=ADMINISTRATOR), all_of_it) is all_of_it
    with pytest.raises(StatusError, match="not currently held"):
        refuse_escalation(admission(), all_of_it)


def test_aggregation_rules_need_all_permissions() -> None:
    obj: JsonObject = {"metadata": {"name": "new"}, "rules": [], "aggregationRule": {"clusterRoleSelectors": [{}]}}
    with pytest.raises(StatusError, match="must have cluster-admin privileges"):
        refuse_escalation(replace(admission(), kind=CLUSTER_ROLE, namespace=""), obj)


def test_writes_of_the_garbage_collector_are_not_checked() -> None:
    old = making({"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]})
    new: JsonObject = {**old, "metadata": {"name": "new", "namespace": "a", "finalizers": ["a/b"]}}
    asked = replace(admission(), operation=Operation.UPDATE, old=old)
    assert refuse_escalation(asked, new) is new


def test_binding_a_role_needs_its_permissions_or_the_bind_verb() -> None:
    bind: JsonObject = {
        "apiGroups": [GROUP],
        "resources": ["clusterroles"],
        "verbs": ["bind"],
        "resourceNames": ["big"],
    }
    big = role("big", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    asked = replace(admission(big), kind=BINDING)
    bound: JsonObject = {"metadata": {"name": "n"}, "roleRef": {"kind": "Role", "name": "r", "apiGroup": GROUP}}
    to_big: JsonObject = {**bound, "roleRef": {"kind": "ClusterRole", "name": "big", "apiGroup": GROUP}}

    assert refuse_escalation(asked, bound) is bound
    with pytest.raises(StatusError, match="not currently held"):
        refuse_escalation(asked, to_big)
    may = admission(big, role("e", bind, namespace="a"), binding("e", "e", JANE, namespace="a"))
    assert refuse_escalation(replace(may, kind=BINDING), to_big) is to_big
    for kind in ("Role", "Other"):
        with pytest.raises(StatusError, match="not found"):
            refuse_escalation(asked, {**bound, "roleRef": {"kind": kind, "name": "gone", "apiGroup": GROUP}})
