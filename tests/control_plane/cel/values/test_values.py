"""Values."""

import pytest

from wharfinger.control_plane.cel.values.values import CelError, CelMap, Value, type_name


def test_maps() -> None:
    made = CelMap([(1, "a"), (True, "b")])
    assert (len(made), made.find(1.0), made.find(True)) == (2, (True, "a"), (True, "b"))
    with pytest.raises(CelError, match="insert failed: key 1 already exists"):
        made.inserted(1, "c")
    assert list(made.inserted("k", 1).keys()) == [1, True, "k"]


def test_names_of_types() -> None:
    values: list[Value] = [None, True, 1, 1.0, "a", b"a", []]
    assert [type_name(value) for value in values] == [
        "null_type",
        "bool",
        "int",
        "double",
        "string",
        "bytes",
        "list",
    ]
