"""What the errors of tables carry."""

from wharfinger.cluster.tables import errors
from wharfinger.cluster.tables.entry import Entry


def test_all_are_of_one_kind() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    assert len(kinds) == 13
    assert all(issubclass(kind, errors.TableError) for kind in kinds)


def test_mistakes_of_the_caller_are_distinguished_from_what_happens_to_him() -> None:
    happens = {
        errors.RowNotFoundError,
        errors.RevisionChangedError,
        errors.DuplicateKeyError,
        errors.TrackerExpiredError,
    }
    assert not any(issubclass(kind, errors.TableUseError) for kind in happens)


def test_what_they_carry() -> None:
    entry = Entry("row", 3)
    assert errors.RevisionChangedError("changed", entry).entry is entry
    assert errors.DuplicateKeyError("taken", "other").key == "other"
