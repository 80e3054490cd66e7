"""CEL types: how they are written, and which of them are assignable to each other."""

import pytest

from wharfinger.control_plane.cel.values.types import (
    DYN,
    INT,
    NULL,
    STRING,
    Bindings,
    Type,
    listed,
    mapped,
    most_general,
    optional,
    param,
    read_type,
    unwrapped,
)


def test_types_are_parsed_and_printed() -> None:
    assert str(read_type("map(string, list(A))")) == "map(string, list(A))"
    assert str(read_type("optional(int)")) == "optional_type(int)"
    with pytest.raises(ValueError, match="not a type"):
        read_type("int int")


def test_type_parameters_are_inferred() -> None:
    bound = Bindings()
    assert bound.all_assignable((listed(INT), INT), (listed(param("A")), param("A")))
    assert bound.substituted(param("A")) == INT
    assert not bound.assignable(STRING, param("A"))
    assert bound.substituted(mapped(param("B"), INT), final=True) == mapped(DYN, INT)


@pytest.mark.parametrize(
    ("have", "want", "fits"),
    [
        (INT, DYN, True),
        (NULL, INT, False),
        (NULL, optional(INT), True),
        (INT, STRING, False),
        (Type("type", "type"), Type("type", "type", (INT,)), True),
    ],
)
def test_types_are_assignable_to_compatible_types(have: Type, want: Type, fits: bool) -> None:
    assert Bindings().assignable(have, want) is fits


def test_the_most_general_type_is_found() -> None:
    assert most_general(listed(INT), listed(DYN)) == listed(DYN)
    assert unwrapped(optional(INT)) == (INT, True)
