"""The types of watch events, which have the same values as in the Kubernetes API."""

from wharfinger.cluster.api.watch_type import WatchType


def test_watch_types_are_those_of_the_api() -> None:
    assert [str(one) for one in WatchType] == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
