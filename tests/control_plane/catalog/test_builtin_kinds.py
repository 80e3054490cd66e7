from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS, GROUP_ORDER
from wharfinger.control_plane.discovery.documents import storage_version_hash
from wharfinger.control_plane.kinds.kind import Deletion, Generation
from wharfinger.control_plane.kinds.type_shapes import is_builtin

KINDS = {kind.group_kind: kind for kind in BUILTIN_KINDS}


def test_names_of_built_in_kinds_are_unique() -> None:
    assert len(KINDS) == len(BUILTIN_KINDS) == len({(kind.group, kind.plural) for kind in BUILTIN_KINDS})


def test_discovery_has_an_order_for_every_group() -> None:
    assert {kind.group for kind in BUILTIN_KINDS} == set(GROUP_ORDER)
    assert GROUP_ORDER[:3] == ("", "apiregistration.k8s.io", "apps")


def test_every_kind_is_in_the_merging_data() -> None:
    unknown = [
        kind.group_kind
        for kind in BUILTIN_KINDS
        for version in kind.versions
        if not is_builtin(kind.group, version.name, kind.kind)
    ]
    assert unknown == []


def test_kinds_with_an_initial_status_have_the_subresource() -> None:
    assert [
        kind.group_kind for kind in BUILTIN_KINDS if kind.initial_status is not None and not kind.versions[0].status
    ] == []


def test_scaled_kinds_are_workloads() -> None:
    scaled = {kind.kind for kind in BUILTIN_KINDS if kind.versions[0].scale is not None}

    assert scaled == {"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}


def test_built_in_kinds_have_the_attributes_of_kubernetes() -> None:
    assert KINDS["Deployment.apps"].short_names == ("deploy",)
    assert KINDS["Deployment.apps"].generation is Generation.SPEC
    assert KINDS["ConfigMap"].generation is Generation.NONE
    assert not KINDS["Namespace"].namespaced
    assert "deletecollection" not in KINDS["Namespace"].verbs
    assert KINDS["Endpoints"].singular == "endpoints"
    assert KINDS["Pod"].deletion is Deletion.OBJECT
    assert not KINDS["Lease.coordination.k8s.io"].unconditional_update
    assert KINDS["Lease.coordination.k8s.io"].create_on_update
    assert KINDS["TokenReview.authentication.k8s.io"].virtual


def test_a_kind_may_have_two_versions_or_groups() -> None:
    autoscaler = KINDS["HorizontalPodAutoscaler.autoscaling"]

    assert [version.name for version in autoscaler.versions] == ["v2", "v1"]
    assert autoscaler.stored_api_version == "autoscaling/v2"
    assert KINDS["Event.events.k8s.io"].collection == KINDS["Event"].collection
    assert KINDS["Event.events.k8s.io"].stored_api_version == "v1"


def test_most_storage_hashes_are_computed() -> None:
    differ = [
        kind.group_kind
        for kind in BUILTIN_KINDS
        if not kind.virtual and kind.storage_hash != storage_version_hash(kind)
    ]

    assert differ == [
        "Event.events.k8s.io",
        "MutatingAdmissionPolicy.admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
        "CustomResourceDefinition.apiextensions.k8s.io",
    ]
