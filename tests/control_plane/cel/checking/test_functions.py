"""The CEL functions with their types, as read from the text that lists them."""

from wharfinger.control_plane.cel.checking.functions import functions
from wharfinger.control_plane.cel.library import functions as library

PLANNED = {"_&&_", "_||_", "_?_:_", "@not_strictly_false", "_[?_]", "or", "orValue"}


def test_every_function_has_an_implementation_and_ids_are_unique() -> None:
    known = functions()
    assert set(known) - PLANNED <= set(library._KNOWN)
    ids = [overload.id for overloads in known.values() for overload in overloads]
    assert len(ids) == len(set(ids))


def test_reading_the_table_twice_gives_the_same_functions() -> None:
    assert functions.__wrapped__() == functions()


def test_an_overload_has_type_variables_and_parameters() -> None:
    [overload] = functions()["orValue"]
    assert (overload.member, sorted(overload.variables), len(overload.parameters)) == (True, ["A"], 2)
