from wharfinger.cluster.control_plane.builtin_kinds import BUILTIN_KINDS, GROUP_ORDER
from wharfinger.cluster.control_plane.kinds import Generation
from wharfinger.cluster.control_plane.list_types import is_builtin

KINDS = {kind.group_kind: kind for kind in BUILTIN_KINDS}


def test_names_are_unique() -> None:
    assert len(KINDS) == len(BUILTIN_KINDS) == len({kind.collection for kind in BUILTIN_KINDS})


def test_every_group_has_its_place_in_discovery() -> None:
    assert {kind.group for kind in BUILTIN_KINDS} <= set(GROUP_ORDER)


def test_every_kind_is_known_to_the_merging_data() -> None:
    unknown = [
        kind.group_kind for kind in BUILTIN_KINDS if not is_builtin(kind.group, kind.versions[0].name, kind.kind)
    ]
    assert unknown == []


def test_whatever_has_a_first_status_has_the_subresource() -> None:
    assert [
        kind.group_kind for kind in BUILTIN_KINDS if kind.initial_status is not None and not kind.versions[0].status
    ] == []


def test_scaled_kinds_are_workloads() -> None:
    scaled = {kind.kind for kind in BUILTIN_KINDS if kind.versions[0].scale is not None}

    assert scaled == {"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}


def test_some_rows() -> None:
    assert KINDS["Deployment.apps"].short_names == ("deploy",)
    assert KINDS["Deployment.apps"].generation is Generation.SPEC
    assert KINDS["ConfigMap"].generation is Generation.NONE
    assert not KINDS["Namespace"].namespaced
    assert "deletecollection" not in KINDS["Namespace"].verbs
    assert KINDS["Endpoints"].singular == "endpoints"
    assert KINDS["ClusterRole.rbac.authorization.k8s.io"].free_name
