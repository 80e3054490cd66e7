"""The table of functions."""

from wharfinger.control_plane.cel.checking.functions import functions
from wharfinger.control_plane.cel.library import functions as library

PLANNED = {"_&&_", "_||_", "_?_:_", "@not_strictly_false", "_[?_]", "or", "orValue"}


def test_every_function_has_an_implementation_and_ids_are_unique() -> None:
    known = functions()
    assert set(known) - PLANNED <= set(library._KNOWN)
    ids = [overload.id for overloads in known.values() for overload in overloads]
    assert len(ids) == len(set(ids))


def test_the_table_is_read_in_the_same_way_again() -> None:
    assert functions.__wrapped__() == functions()


def test_overloads() -> None:
    [overload] = functions()["orValue"]
    assert (overload.member, sorted(overload.variables), len(overload.parameters)) == (True, ["A"], 2)
