"""The words of a watch."""

from wharfinger.cluster import client
from wharfinger.cluster.watch_type import WatchType


def test_words_of_the_api() -> None:
    assert [str(one) for one in WatchType] == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


def test_it_belongs_to_the_seam() -> None:
    assert client.WatchType is WatchType
