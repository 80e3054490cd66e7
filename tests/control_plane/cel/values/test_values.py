"""CEL values: maps, and the type names of values."""

import pytest

from wharfinger.control_plane.cel.values.values import CelError, CelMap, Value, type_name


def test_a_map_finds_keys_by_type_and_refuses_duplicates() -> None:
    made = CelMap([(1, "a"), (True, "b")])
    assert (len(made), made.find(1.0), made.find(True)) == (2, (True, "a"), (True, "b"))
    with pytest.raises(CelError, match="insert failed: key 1 already exists"):
        made.inserted(1, "c")
    assert list(made.inserted("k", 1).keys()) == [1, True, "k"]


def test_values_have_type_names() -> None:
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
