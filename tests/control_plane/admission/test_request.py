from msgspec.structs import replace

from tests.control_plane.support.policy_asking import asked
from wharfinger.control_plane.admission.request import at_resource, namespace_of, request_document, resource_of
from wharfinger.control_plane.api.common.admission import Operation


def test_empty_fields_are_left_out() -> None:
    admission, resource, _ = asked()

    document = request_document(admission, resource, resource)

    assert document["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (document["name"], document["namespace"], document["operation"]) == ("a", "default", "CREATE")
    assert "subResource" not in document
    assert document["userInfo"] == {
        "username": "admin",
        "uid": "admin",
        "groups": ["system:masters", "system:authenticated"],
    }


def test_a_request_document_has_options_and_subresource() -> None:
    admission, resource, _ = asked()
    going = replace(admission, operation=Operation.DELETE, subresource="x", asked=(("dryRun", ["All"]),))

    document = request_document(going, resource, resource)

    assert document["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    assert document["subResource"] == document["requestSubResource"] == "x"


def test_an_object_is_shown_at_a_version() -> None:
    _, resource, _ = asked("horizontalpodautoscalers", "autoscaling", "v1")

    found = at_resource(resource, {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {}})

    assert found is not None
    assert found["apiVersion"] == "autoscaling/v1"
    assert at_resource(resource, None) is None


def test_a_namespace_request_is_in_its_own_namespace() -> None:
    admission, _, _ = asked("namespaces")

    assert namespace_of(admission) == "a"
    assert resource_of(replace(admission, version="v9")) is None
