"""The types of the storage's interface. storage_contract tests the implementations."""

from wharfinger.control_plane.storage.interface import Collection, CompactedError, Key


def test_keys_sort_as_paths() -> None:
    pods = Collection("", "pods")
    keys = [Key(pods, "a", "b"), Key(pods, "a-b", "a"), Key(pods, "", "c")]

    assert sorted(key.place for key in keys) == ["/c", "a-b/a", "a/b"]


def test_the_error_of_a_compacted_revision_names_the_oldest() -> None:
    assert str(CompactedError(3, 9)) == "revision 3 is compacted; the oldest kept is 9"
