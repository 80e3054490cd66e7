from dataclasses import replace

import pytest

from tests.control_plane.support.access_views import View, binding, role
from wharfinger.control_plane.access.impersonation import impersonated
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import ADMINISTRATOR, User
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject

ASKED = Attributes(ADMINISTRATOR, "list", resource="pods")


@pytest.mark.parametrize(
    ("headers", "name", "groups"),
    [
        ({"impersonate-user": "jane"}, "jane", ("system:authenticated",)),
        ({"impersonate-user": "jane", "impersonate-group": "a, b\nc"}, "jane", ("a, b", "c", "system:authenticated")),
        ({"impersonate-user": "jane", "impersonate-group": "system:authenticated"}, "jane", ("system:authenticated",)),
        ({"impersonate-user": "system:anonymous"}, "system:anonymous", ("system:unauthenticated",)),
        (
            {"impersonate-user": "system:serviceaccount:a:bot"},
            "system:serviceaccount:a:bot",
            ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"),
        ),
    ],
)
def test_impersonated_users_have_the_requested_groups(
    headers: dict[str, str], name: str, groups: tuple[str, ...]
) -> None:
    found = impersonated(View(), ADMINISTRATOR, headers, ASKED)
    assert (found.name, found.groups) == (name, groups)


def test_impersonated_users_have_the_requested_uid_and_extra() -> None:
    headers = {"impersonate-user": "jane", "impersonate-uid": "u", "impersonate-extra-sco%2fpes": "a\nb,c"}
    found = impersonated(View(), ADMINISTRATOR, headers, ASKED)
    assert (found.uid, found.extra) == ("u", {"sco/pes": ("a", "b,c")})


def test_a_request_without_impersonation_headers_keeps_its_user() -> None:
    assert impersonated(View(), ADMINISTRATOR, {"accept": "x"}, ASKED) is ADMINISTRATOR


def test_impersonated_groups_without_a_user_are_refused() -> None:
    with pytest.raises(StatusError, match="without impersonating a user"):
        impersonated(View(), ADMINISTRATOR, {"impersonate-group": "a"}, ASKED)


def test_each_impersonated_attribute_needs_a_permission() -> None:
    rule: JsonObject = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]}
    view = View([role("r", rule), binding("b", "r", {"kind": "User", "name": "joe"})])
    asked = replace(ASKED, user=User("joe", ()))

    def refused(headers: dict[str, str]) -> str:
        with pytest.raises(StatusError) as error:
            impersonated(view, asked.user, headers, asked)
        return error.value.message

    assert impersonated(view, asked.user, {"impersonate-user": "jane"}, asked).name == "jane"
    assert 'cannot impersonate-on:user-info:list resource "pods"' in refused({"impersonate-user": "admin"})
    assert "cannot impersonate-on:user-info:list" in refused({"impersonate-user": "jane", "impersonate-group": "a"})
    assert "cannot impersonate-on:arbitrary-node:list" in refused({"impersonate-user": "system:node:a"})
    account = {"impersonate-user": "system:serviceaccount:a:b"}
    assert "cannot impersonate-on:serviceaccount:list" in refused(account)
    more = {**account, "impersonate-group": "x"}
    assert 'cannot impersonate resource "serviceaccounts"' in refused(more)


@pytest.mark.parametrize(
    ("headers", "resources", "groups"),
    [
        ({"impersonate-user": "jane", "impersonate-group": "g"}, ["users", "groups"], ("g", "system:authenticated")),
        ({"impersonate-user": "system:node:n"}, ["nodes"], ("system:nodes", "system:authenticated")),
        ({"impersonate-user": "j", "impersonate-uid": "u"}, ["users", "uids"], ("system:authenticated",)),
        ({"impersonate-user": "j", "impersonate-extra-x": "a"}, ["users", "userextras/x"], ("system:authenticated",)),
    ],
)
def test_constrained_impersonation_needs_permissions_for_user_and_action(
    headers: dict[str, str], resources: list[str], groups: tuple[str, ...]
) -> None:
    mode = "arbitrary-node" if "system:node" in headers["impersonate-user"] else "user-info"
    acting: JsonObject = {
        "apiGroups": ["authentication.k8s.io"],
        "resources": [*resources],
        "verbs": [f"impersonate:{mode}"],
    }
    on: JsonObject = {"apiGroups": [""], "resources": ["pods"], "verbs": [f"impersonate-on:{mode}:list"]}
    view = View([role("r", acting, on), binding("b", "r", {"kind": "User", "name": "joe"})])
    asked = replace(ASKED, user=User("joe", ()))

    assert impersonated(view, asked.user, headers, asked).groups == groups
    if mode == "user-info":
        with pytest.raises(StatusError):
            impersonated(view, asked.user, {**headers, "impersonate-group": "system:masters"}, asked)
