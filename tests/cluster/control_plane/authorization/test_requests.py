import pytest

from tests.cluster.control_plane.authorization.views import View, binding, role
from wharfinger.cluster.control_plane.authentication import ADMINISTRATOR, ANONYMOUS, User
from wharfinger.cluster.control_plane.authorization.requests import attributes_of, authorize, authorize_resource
from wharfinger.cluster.control_plane.authorization.rules import Attributes
from wharfinger.cluster.control_plane.routes import ResourceRoute
from wharfinger.cluster.control_plane.status import StatusError

JANE = User("jane", ())


def test_attributes_of_requests() -> None:
    one = attributes_of(JANE, ResourceRoute("apps", "v1", "a", "deployments", "d", "scale"), "get")
    assert (one.group, one.combined_resource, one.namespace, one.name) == ("apps", "deployments/scale", "a", "d")
    assert attributes_of(JANE, ResourceRoute("", "v1", "", "namespaces", "a"), "get").namespace == "a"
    listed = attributes_of(JANE, ResourceRoute("", "v1", "a", "pods"), "list", "spec.x=y,metadata.name=z")
    assert listed.name == "z"


def test_refusals_name_who_what_and_where() -> None:
    asked = attributes_of(JANE, ResourceRoute("apps", "v1", "a", "deployments", "d", "scale"), "patch")
    with pytest.raises(StatusError) as refused:
        authorize_resource(View(), asked)
    assert refused.value.message == (
        'deployments.apps "d" is forbidden: User "jane" cannot patch resource "deployments/scale" in API group "apps" '
        'in the namespace "a"'
    )
    assert refused.value.details == {"name": "d", "group": "apps", "kind": "deployments"}
    authorize_resource(View(), attributes_of(ADMINISTRATOR, ResourceRoute("", "v1", "", "pods"), "list"))


def test_paths() -> None:
    view = View(
        [
            role("r", {"nonResourceURLs": ["/version"], "verbs": ["get"]}),
            binding("b", "r", {"kind": "Group", "name": "system:unauthenticated"}),
        ]
    )
    authorize(view, Attributes(ANONYMOUS, "get", path="/version"))
    authorize(View(), Attributes(ADMINISTRATOR, "get", path="/metrics"))
    with pytest.raises(StatusError, match='User "system:anonymous" cannot get path "/metrics"'):
        authorize(view, Attributes(ANONYMOUS, "get", path="/metrics"))
