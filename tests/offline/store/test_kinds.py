"""The kinds that have a controller."""

from wharfinger.offline.store import kinds


def test_a_kind_of_another_group_is_not_a_node() -> None:
    assert kinds.BUCKET in kinds.SCHEDULABLE
    assert "Bucket.s3.example.com" not in kinds.SCHEDULABLE


def test_data_kinds_are_not_nodes() -> None:
    assert not kinds.SCHEDULABLE & kinds.DATA
    assert {kinds.CONFIG_MAP, kinds.SECRET, kinds.PACKAGE_REPOSITORY} < kinds.DATA
