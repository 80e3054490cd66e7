"""Operations on CEL values: arithmetic, order, equality and conversions."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.control_plane.support.cel_evaluating import value_of
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import CelError, Duration, Timestamp, Uint, Value


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
def test_operators_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value


HOUR = Duration(3600 * 10**9)
DAWN = Timestamp(0)
BY_TYPE: list[tuple[Callable[[], Value], object]] = [
    (partial(operations.add, 1.5, 2.5), 4.0),
    (partial(operations.add, b"a", b"b"), b"ab"),
    (partial(operations.add, [1], [2]), [1, 2]),
    (partial(operations.add, HOUR, HOUR), Duration(7200 * 10**9)),
    (partial(operations.add, DAWN, HOUR), Timestamp(3600 * 10**9)),
    (partial(operations.subtract, DAWN, DAWN), Duration(0)),
    (partial(operations.subtract, DAWN, HOUR), Timestamp(-3600 * 10**9)),
    (partial(operations.subtract, 2.5, 1.0), 1.5),
    (partial(operations.multiply, 3, 4), 12),
    (partial(operations.divide, 7.0, 2.0), 3.5),
    (partial(operations.negate, 1.5), -1.5),
    (partial(operations.negate, HOUR), Duration(-3600 * 10**9)),
    (partial(operations.compare, True, False), 1),
    (partial(operations.compare, "a", "b"), -1),
    (partial(operations.compare, b"a", b"a"), 0),
    (partial(operations.compare, HOUR, HOUR), 0),
    (partial(operations.compare, DAWN, DAWN), 0),
    (partial(operations.contains, [1, 2], 2), True),
    (partial(operations.key_text, True), "true"),
    (partial(operations.key_text, 1.5), "1.5"),
    (partial(operations.to_int, HOUR), 3600 * 10**9),
    (partial(operations.to_int, "-5"), -5),
    (partial(operations.to_uint, 2.9), Uint(2)),
    (partial(operations.to_uint, "7"), Uint(7)),
    (partial(operations.to_double, 2), 2.0),
    (partial(operations.to_bool, "f"), False),
    (partial(operations.to_bool, True), True),
    (partial(operations.to_string, True), "true"),
    (partial(operations.to_string, "a"), "a"),
    (partial(operations.to_string, DAWN), "1970-01-01T00:00:00Z"),
    (partial(operations.to_bytes, b"a"), b"a"),
    (partial(operations.to_timestamp, DAWN), DAWN),
    (partial(operations.to_timestamp, 60), Timestamp(60 * 10**9)),
    (partial(operations.to_duration, HOUR), HOUR),
    (partial(operations.to_duration, 5), Duration(5)),
]


@pytest.mark.parametrize(("operation", "result"), BY_TYPE)
def test_operations_accept_operands_of_every_type(operation: Callable[[], Value], result: object) -> None:
    found = operation()
    assert (type(found), found) == (type(result), result)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (partial(operations.add, DAWN, DAWN), operations.NO_OVERLOAD),
        (partial(operations.add, 1, "a"), operations.NO_OVERLOAD),
        (partial(operations.add, Timestamp(253402300799 * 10**9), HOUR), "timestamp overflow"),
        (partial(operations.add, Duration(2**63 - 1), HOUR), "integer overflow"),
        (partial(operations.subtract, HOUR, DAWN), operations.NO_OVERLOAD),
        (partial(operations.subtract, "a", "a"), operations.NO_OVERLOAD),
        (partial(operations.multiply, "a", 2), operations.NO_OVERLOAD),
        (partial(operations.divide, 1, 0), "division by zero"),
        (partial(operations.divide, "a", 1), operations.NO_OVERLOAD),
        (partial(operations.modulo, 1.0, 2.0), operations.NO_OVERLOAD),
        (partial(operations.negate, "a"), operations.NO_OVERLOAD),
        (partial(operations.compare, float("nan"), 1.0), "NaN values cannot be ordered"),
        (partial(operations.compare, [], []), operations.NO_OVERLOAD),
        (partial(operations.contains, 1, 1), operations.NO_OVERLOAD),
        (partial(operations.element, [1], "a"), "unsupported index type 'string' in list"),
        (partial(operations.element, 1, 1), "no such key: 1"),
        (partial(operations.size, 1), operations.NO_OVERLOAD),
        (partial(operations.to_int, True), operations.NO_OVERLOAD),
        (partial(operations.to_int, float("inf")), "integer overflow"),
        (partial(operations.to_int, []), operations.NO_OVERLOAD),
        (partial(operations.to_uint, True), operations.NO_OVERLOAD),
        (partial(operations.to_uint, -1.0), "unsigned integer overflow"),
        (partial(operations.to_uint, []), operations.NO_OVERLOAD),
        (partial(operations.to_double, "1_0"), "type conversion error"),
        (partial(operations.to_double, "x"), "type conversion error"),
        (partial(operations.to_double, []), operations.NO_OVERLOAD),
        (partial(operations.to_bool, 1), operations.NO_OVERLOAD),
        (partial(operations.to_string, b"\xff"), "invalid UTF-8"),
        (partial(operations.to_string, []), operations.NO_OVERLOAD),
        (partial(operations.to_bytes, 1), operations.NO_OVERLOAD),
        (partial(operations.to_timestamp, "x"), "type conversion error"),
        (partial(operations.to_timestamp, []), operations.NO_OVERLOAD),
        (partial(operations.to_duration, "x"), "type conversion error"),
        (partial(operations.to_duration, []), operations.NO_OVERLOAD),
    ],
)
def test_invalid_operations_are_errors(operation: Callable[[], Value], words: str) -> None:
    with pytest.raises(CelError, match=words):
        operation()
