"""The table of cluster-scoped kinds against the kinds that the control plane serves."""

from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.kube.cluster_scoped import CLUSTER_SCOPED


def test_it_is_what_the_server_serves() -> None:
    assert {(kind.group, kind.kind) for kind in BUILTIN_KINDS if not kind.namespaced} == CLUSTER_SCOPED
