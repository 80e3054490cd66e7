"""Validation of the names of devices.

The recorded answers of a real API server (scenario ``hunt3-kinds-devices``) cover other errors.
"""

import pytest

from wharfinger.control_plane.api.resource.device_names import (
    binding_errors,
    fully_qualified_name_errors,
    listed_errors,
    pool_name_errors,
    qualified_name_errors,
    set_errors,
    shortened,
)
from wharfinger.control_plane.wire.field_errors import required
from wharfinger.control_plane.wire.status import FieldError


@pytest.mark.parametrize(
    ("name", "count"),
    [("a", 0), ("a.example.com/b", 0), ("1a", 1), ("a/b/c", 0), ("/a", 1), ("a/", 1), ("A_/b", 1), ("a" * 33, 1)],
)
def test_invalid_qualified_names_are_refused(name: str, count: int) -> None:
    assert len(qualified_name_errors(name, "f")) == count


def test_fully_qualified_names_need_a_domain() -> None:
    assert fully_qualified_name_errors("a.example.com/b", "f") == []
    assert len(fully_qualified_name_errors("b", "f")) == 1


@pytest.mark.parametrize(("name", "count"), [("a", 0), ("a.b/c", 0), ("", 1), ("a//b", 1), ("a/" * 150 + "a", 1)])
def test_invalid_pool_names_are_refused(name: str, count: int) -> None:
    assert len(pool_name_errors(name, "f")) == count


def test_a_list_over_the_limit_gives_one_error() -> None:
    def wrong(item: str, field: str) -> list[FieldError]:
        return [required(field, item)]

    assert [error.reason for error in listed_errors(["a", "b"], 1, "f", wrong)] == ["FieldValueTooMany"]
    found = set_errors(["a", "a"], -1, "f", lambda _item, _field: [], lambda item: item, lambda item: item)
    assert [error.field for error in found] == ["f[1]"]
    assert len(set_errors(["a", "a"], 1, "f", lambda _item, _field: [], str, str)) == 1


def test_long_keys_are_shortened_in_the_middle() -> None:
    assert shortened("a" * 10, 10) == "a" * 10
    assert shortened("0123456789abcdef", 10) == "0123...def"


@pytest.mark.parametrize(
    ("conditions", "failures", "fields"),
    [
        ([], [], []),
        (["a"], ["b"], []),
        (["a"], [], ["p.bindingFailureConditions"]),
        ([], ["a"], ["p.bindingConditions"]),
        (["a", "a"], ["a"], ["p.bindingConditions[1]", "p.bindingFailureConditions[0]"]),
    ],
)
def test_invalid_binding_conditions_are_reported(conditions: list[str], failures: list[str], fields: list[str]) -> None:
    assert [error.field for error in binding_errors(conditions, failures, "p")] == fields
