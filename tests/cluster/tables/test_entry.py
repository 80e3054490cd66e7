"""The entries of a table: when two entries are equal, and that no snapshot sees a stored deletion (a grave)."""

from wharfinger.cluster.tables.entry import FORGOTTEN, GRAVE, PRESENT, Entry, Version


def test_entries_are_distinguished_by_row_and_revision() -> None:
    entry = Entry("row", 3)
    assert entry == Version("key", "row", 3, 1, PRESENT)
    assert entry != Entry("row", 4)
    assert entry != Entry("other", 3)
    assert entry != ("row", 3)
    assert {entry, Entry("row", 3)} == {entry}
    assert repr(entry) == "Entry('row', revision=3)"


def test_no_snapshot_sees_a_grave() -> None:
    """A snapshot contains a version only if the version ends after the snapshot's revision, which is at least 0.

    A grave (the version that stores a deletion) ends at 0 or before.
    """
    assert max(GRAVE, FORGOTTEN) <= 0 < PRESENT
