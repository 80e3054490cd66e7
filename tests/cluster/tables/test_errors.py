"""The errors that tables raise, and their attributes."""

from wharfinger.cluster.tables import errors
from wharfinger.cluster.tables.entry import Entry


def test_all_errors_share_one_base_class() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    assert len(kinds) == 13
    assert all(issubclass(kind, errors.TableError) for kind in kinds)


def test_usage_errors_are_distinguished_from_other_errors() -> None:
    happens = {
        errors.RowNotFoundError,
        errors.RevisionChangedError,
        errors.DuplicateKeyError,
        errors.TrackerExpiredError,
    }
    assert not any(issubclass(kind, errors.TableUseError) for kind in happens)


def test_errors_carry_the_entry_or_key() -> None:
    entry = Entry("row", 3)
    assert errors.RevisionChangedError("changed", entry).entry is entry
    assert errors.DuplicateKeyError("taken", "other").key == "other"
