"""The release that owns an object, and the marks of ownership on objects."""

import pytest

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.objects.ownership import (
    ForeignObjectError,
    Owner,
    check_owner,
    flattened,
    is_kept,
    owned,
    owner_of,
    placed,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
KEY = ObjectKey(POD, "prod", "a")
OWNER = Owner("web", "prod")


def obj(**metadata: JsonObject | str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", **metadata}}


def test_owned_labels_and_annotates_a_copy() -> None:
    before = obj(labels={"app": "x"}, annotations={"note": "y"})
    after = owned(before, OWNER)
    assert after["metadata"] == {
        "name": "a",
        "labels": {"app": "x", "app.kubernetes.io/managed-by": "Helm", "wharfinger.dev/release": "web"},
        "annotations": {
            "note": "y",
            "meta.helm.sh/release-name": "web",
            "meta.helm.sh/release-namespace": "prod",
        },
    }
    assert before == obj(labels={"app": "x"}, annotations={"note": "y"})
    assert owner_of(after) == OWNER
    check_owner(KEY, after, OWNER)


def test_an_object_of_another_release_is_refused_by_name() -> None:
    with pytest.raises(
        ForeignObjectError, match=r"Pod prod/a belongs to the release prod/db, so it cannot also be part of prod/web"
    ):
        check_owner(KEY, owned(obj(), Owner("db", "prod")), OWNER)
    with pytest.raises(ForeignObjectError, match="other/web"):
        check_owner(KEY, owned(obj(), Owner("web", "other")), OWNER)


def test_an_object_of_no_release_is_refused_with_a_remedy() -> None:
    with pytest.raises(
        ForeignObjectError, match=r"not part of any release; .* meta\.helm\.sh/release-name=web"
    ) as caught:
        check_owner(KEY, obj(), OWNER)
    assert not caught.value.transient
    with pytest.raises(ForeignObjectError, match="managed by argocd,"):
        check_owner(KEY, obj(labels={"app.kubernetes.io/managed-by": "argocd"}), OWNER)


def test_the_helm_annotations_alone_allow_adoption() -> None:
    annotations: JsonObject = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "prod"}
    check_owner(KEY, obj(annotations=annotations), OWNER)


def test_the_keep_policy_is_recognized() -> None:
    assert is_kept(obj(annotations={"helm.sh/resource-policy": " Keep "}))
    assert not is_kept(obj(annotations={"helm.sh/resource-policy": "delete"}))
    assert not is_kept(obj())


def test_the_namespace_is_set_for_namespaced_kinds_only() -> None:
    assert placed(obj(), KEY)["metadata"] == {"name": "a", "namespace": "prod"}
    node = ObjectKey(ResourceType("", "v1", "Node", "nodes", namespaced=False), "", "a")
    assert placed(obj(namespace="stray"), node)["metadata"] == {"name": "a"}


def test_lists_are_flattened() -> None:
    typed: JsonObject = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "b"}}]}
    mixed: JsonObject = {"apiVersion": "v1", "kind": "List", "items": [obj(), typed]}
    objects = flattened([mixed, obj()])
    assert [(one["kind"], name_of(one)) for one in objects] == [("Pod", "a"), ("Pod", "b"), ("Pod", "a")]


@pytest.mark.parametrize(
    "document",
    [{}, {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "List", "items": [{}]}],
)
def test_documents_that_are_not_objects_are_refused(document: JsonObject) -> None:
    with pytest.raises(ReleaseError, match="without apiVersion, kind or name"):
        flattened([document])


def test_lists_of_other_values_are_refused() -> None:
    with pytest.raises(ReleaseError, match="not a Kubernetes object"):
        flattened([{"apiVersion": "v1", "kind": "List", "items": [5]}])
    with pytest.raises(ReleaseError, match=r"metadata\.name: expected a string, found a boolean"):
        flattened([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": False}}])


def test_a_kind_that_only_ends_in_list_is_an_object() -> None:
    allow: JsonObject = {"apiVersion": "example/v1", "kind": "AllowList", "metadata": {"name": "a"}}
    assert flattened([allow]) == [allow]
