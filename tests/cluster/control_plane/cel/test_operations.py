"""Arithmetic, order, equality and conversions."""

import pytest

from tests.cluster.control_plane.cel.evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("1u - 2u", "unsigned integer overflow"),
        ("7 % -3", 1),
        ("-7 / 2", -3),
        ("1 % 0", "modulus by zero"),
        ("1.0 / 0.0 > 1.0", True),
        ("1 < 1.5", True),
        ("dyn(1) == dyn(1.0)", True),
        ("dyn(1) == dyn('1')", False),
        ("[1] == [1, 2]", False),
        ("{'a': 1} == {'a': 1}", True),
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("int(3.9)", 3),
        ("uint(-1)", "unsigned integer overflow"),
        ("double('1.5')", 1.5),
        ("string(1.0)", "1"),
        ("bool('yes')", "type conversion error from 'string' to 'bool'"),
        ("string(duration('90s'))", "90s"),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("timestamp('2020-01-01T00:00:00Z') + duration('1h') > timestamp('2020-01-01T00:30:00Z')", True),
        ("[1][1]", "index out of bounds: 1"),
        ("bytes('a') == b'a'", True),
        ("'a' in {'a': 1}", True),
        ("size('é')", 1),
        ("'a' + 'b'", "ab"),
        ("string(b'a')", "a"),
        ("-(-1)", 1),
        ("2.0 * 3.0", 6.0),
        ("duration('1h') - duration('30m') == duration('30m')", True),
    ],
)
def test_values(text: str, value: object) -> None:
    assert value_of(text) == value
