"""The words of the seam; what implementations do is in storage_contract."""

from wharfinger.control_plane.storage.interface import Collection, CompactedError, Key


def test_places_sort_as_paths() -> None:
    pods = Collection("", "pods")
    keys = [Key(pods, "a", "b"), Key(pods, "a-b", "a"), Key(pods, "", "c")]

    assert sorted(key.place for key in keys) == ["/c", "a-b/a", "a/b"]


def test_a_compacted_revision_says_what_can_be_asked_for() -> None:
    assert str(CompactedError(3, 9)) == "revision 3 is compacted; the oldest kept is 9"
