"""The paths by which definitions of custom kinds name fields, such as ``.a['x.y']``."""

import pytest

from wharfinger.control_plane.custom.schema_paths import FieldPathError, valid_field_path
from wharfinger.formats.json.value import JsonObject

SCHEMA: JsonObject = {"properties": {"a": {"additionalProperties": {"type": "string"}}, "b'c": {"type": "integer"}}}


def test_valid_field_paths_are_normalized() -> None:
    assert valid_field_path(".a['x.y']", SCHEMA)[1] == "a[x.y]"
    assert valid_field_path("['b\\'c']", SCHEMA)[1] == "b'c"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".a[x]", "expected single quoted string but got x"),
        (".a['x'", "unexpected end of JSON path"),
        (".a['x'.", "expected ] but got ."),
        (".q", "does not refer to a valid field"),
        (".a.b.c", "does not refer to a valid field"),
        (".a['\\q']", "invalid string literal: invalid escape char \\q"),
    ],
)
def test_invalid_field_paths_are_refused(text: str, why: str) -> None:
    with pytest.raises(FieldPathError) as caught:
        valid_field_path(text, SCHEMA)
    assert str(caught.value) == why
