from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.catalog.columns import _CELLS, AGE, NAME, columns_of


def test_rows_belong_to_existing_kinds() -> None:
    """Check the table of columns for this Kubernetes version. test_kubernetes_version checks it for the next version."""
    assert set(_CELLS) - {kind.group_kind for kind in BUILTIN_KINDS} == {
        "ClusterTrustBundle.certificates.k8s.io",
        "PodCertificateRequest.certificates.k8s.io",
        "DeviceTaintRule.resource.k8s.io",
        "StorageVersionMigration.storagemigration.k8s.io",
    }


def test_columns_have_names_priorities_and_descriptions() -> None:
    columns = columns_of("Deployment.apps")

    assert [column.name for column in columns] == [
        "Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector",
    ]  # fmt: skip
    assert [column.priority for column in columns] == [0, 0, 0, 0, 0, 1, 1, 1]
    assert columns[1].description == "Number of the pod with ready state"
    assert NAME.format == "name"
    assert AGE.type == "date"


def test_other_kinds_show_their_creation_time() -> None:
    assert [column.name for column in columns_of("LimitRange")] == ["Name", "Created At"]
    assert columns_of("Nothing") == columns_of("LimitRange")
