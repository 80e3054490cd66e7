import pytest

from tests.control_plane.support.access_views import View, binding, role
from wharfinger.control_plane.access.rbac import Decision, decide
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import ADMINISTRATOR, User
from wharfinger.formats.json.value import JsonObject

READ: JsonObject = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
JANE: JsonObject = {"kind": "User", "name": "jane"}
OPS: JsonObject = {"kind": "Group", "name": "ops"}
BOT: JsonObject = {"kind": "ServiceAccount", "name": "bot"}


def get(user: User, namespace: str) -> Attributes:
    return Attributes(user, "get", namespace, resource="pods")


@pytest.mark.parametrize(
    ("subject", "user", "source"),
    [
        (JANE, User("jane", ()), 'User "jane"'),
        (OPS, User("x", ("ops",)), 'Group "ops"'),
        (BOT, User("system:serviceaccount:a:bot", ()), 'ServiceAccount "bot/a"'),
    ],
)
def test_a_role_binding_grants_access_in_its_namespace(subject: JsonObject, user: User, source: str) -> None:
    view = View([role("r", READ, namespace="a"), binding("b", "r", subject, namespace="a")])

    reason = f'RBAC: allowed by RoleBinding "b/a" of Role "r" to {source}'
    assert decide(view, get(user, "a")) == Decision(allowed=True, reason=reason)
    assert decide(view, get(user, "b")) == Decision(allowed=False)
    assert decide(view, get(User("somebody", ()), "a")) == Decision(allowed=False)


def test_a_cluster_role_binding_grants_access_everywhere() -> None:
    view = View([role("r", READ), binding("b", "r", JANE)])
    reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'

    assert decide(view, get(User("jane", ()), "a")) == Decision(allowed=True, reason=reason)
    assert decide(view, get(User("jane", ()), "")) == Decision(allowed=True, reason=reason)


def test_a_cluster_role_may_be_bound_in_a_namespace() -> None:
    view = View([role("r", READ), binding("b", "r", JANE, namespace="a", kind="ClusterRole")])

    assert decide(view, get(User("jane", ()), "a")).allowed
    assert not decide(view, get(User("jane", ()), "")).allowed


def test_a_missing_role_is_reported() -> None:
    view = View([binding("b", "gone", JANE), binding("c", "odd", JANE, kind="Other")])
    found = decide(view, get(User("jane", ()), "a"))

    assert not found.allowed
    assert 'clusterrole.rbac.authorization.k8s.io "gone" not found' in found.reason


def test_administrators_need_no_rule() -> None:
    assert decide(View(), get(ADMINISTRATOR, "a")) == Decision(allowed=True)
