from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.storage.interface import Collection


def test_a_kind_has_resource_group_and_collection_names() -> None:
    deployment, pod = builtin("apps", "v1", "deployments").kind, builtin("", "v1", "pods").kind

    assert (deployment.resource, pod.resource) == ("deployments.apps", "pods")
    assert (deployment.group_kind, pod.group_kind) == ("Deployment.apps", "Pod")
    assert (deployment.api_version("v1"), pod.api_version("v1")) == ("apps/v1", "v1")
    assert deployment.collection == Collection("apps", "deployments")


def test_versions_are_found_by_name() -> None:
    deployment = builtin("apps", "v1", "deployments").kind

    assert deployment.version("v1") is deployment.versions[0]
    assert deployment.version("v2") is None
