from wharfinger.cluster.control_plane.builtin_kinds import BUILTIN_KINDS
from wharfinger.cluster.control_plane.printers import _ROWS, columns_of


def test_every_row_is_of_a_kind_that_is_served() -> None:
    assert set(_ROWS) <= {kind.group_kind for kind in BUILTIN_KINDS}


def test_what_kubectl_shows_of_deployments() -> None:
    narrow = [column.name for column in columns_of("Deployment.apps") if column.priority == 0]
    wide = [column.name for column in columns_of("Deployment.apps") if column.priority == 1]

    assert narrow == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert wide == ["Containers", "Images", "Selector"]


def test_other_kinds_show_their_name_and_time() -> None:
    assert [column.name for column in columns_of("CSINode.storage.k8s.io")] == ["Name", "Created At"]
