import httpx
import pytest

from tests.control_plane.support.access_views import View, binding, role
from wharfinger.control_plane.access.request_authorization import attributes_of, authorize, authorize_resource
from wharfinger.control_plane.access.role_rules import Attributes
from wharfinger.control_plane.access.users import ADMINISTRATOR, ANONYMOUS, User
from wharfinger.control_plane.service import open_control_plane
from wharfinger.control_plane.wire.routes import ResourceRoute
from wharfinger.control_plane.wire.status import StatusError

JANE = User("jane", ())


def test_a_route_has_authorization_attributes() -> None:
    one = attributes_of(JANE, ResourceRoute("apps", "v1", "a", "deployments", "d", "scale"), "get")
    assert (one.group, one.combined_resource, one.namespace, one.name) == ("apps", "deployments/scale", "a", "d")
    assert attributes_of(JANE, ResourceRoute("", "v1", "", "namespaces", "a"), "get").namespace == "a"
    listed = attributes_of(JANE, ResourceRoute("", "v1", "a", "pods"), "list", "spec.x=y,metadata.name=z")
    assert listed.name == "z"


def test_refusals_name_user_verb_resource_and_namespace() -> None:
    asked = attributes_of(JANE, ResourceRoute("apps", "v1", "a", "deployments", "d", "scale"), "patch")
    with pytest.raises(StatusError) as refused:
        authorize_resource(View(), asked)
    assert refused.value.message == (
        'deployments.apps "d" is forbidden: User "jane" cannot patch resource "deployments/scale" in API group "apps" '
        'in the namespace "a"'
    )
    assert refused.value.details == {"name": "d", "group": "apps", "kind": "deployments"}
    authorize_resource(View(), attributes_of(ADMINISTRATOR, ResourceRoute("", "v1", "", "pods"), "list"))


def test_non_resource_paths_are_authorized() -> None:
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


async def test_permission_to_update_does_not_include_creation() -> None:
    group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    verbs = {"verbs": ["update", "patch"], "apiGroups": ["", "coordination.k8s.io"]}
    role_ = {"metadata": {"name": "r"}, "rules": [{**verbs, "resources": ["configmaps", "leases"]}]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    bound = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
    async with (
        open_control_plane(simulate=False) as control_plane,
        httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
    ):
        await client.post(f"{group}/roles", json=role_)
        await client.post(f"{group}/rolebindings", json=bound)
        jane = {"impersonate-user": "jane"}
        lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
        put = await client.put(lease, json={"metadata": {"name": "x"}}, headers=jane)
        config = "/api/v1/namespaces/default/configmaps/x"
        applied = await client.patch(
            f"{config}?fieldManager=m",
            json={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
            headers={**jane, "content-type": "application/apply-patch+yaml"},
        )
        missing = [(await client.get(path)).status_code for path in (lease, config)]
        await client.put(lease, json={"metadata": {"name": "x"}})
        merge = {**jane, "content-type": "application/merge-patch+json"}
        changed = await client.patch(lease, json={"metadata": {"labels": {"a": "b"}}}, headers=merge)
    assert put.json()["message"] == (
        'leases.coordination.k8s.io "x" is forbidden: User "jane" cannot create resource "leases" in API group '
        '"coordination.k8s.io" in the namespace "default"'
    )
    assert applied.json()["message"] == (
        'configmaps "x" is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace '
        '"default"'
    )
    assert (put.status_code, applied.status_code, missing, changed.status_code) == (403, 403, [404, 404], 200)
