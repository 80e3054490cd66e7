"""Messages about failed jq programs, which never contain the input."""

import jq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.jq.messages import UNKNOWN, without_values

SECRET = "hunter22 (x) and number (1) \"y\" 'z')"
VALUE = {"s": SECRET, "n": 22222, "o": {SECRET: [SECRET]}, "a": [SECRET]}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (".s + 1", "string and number cannot be added"),
        (".n - .s", "number and string cannot be subtracted"),
        (".n % 0", "number and number cannot be divided (remainder) because the divisor is zero"),
        (".o | contains(1)", "object and number cannot have their containment checked"),
        (".s | tonumber", "string cannot be parsed as a number"),
        (".s | keys", "string has no keys"),
        (".n[]", "Cannot iterate over number"),
        (".s.x", "Cannot index string with string"),
        (".a[.s]", "Cannot index array with string"),
        (".o | has(0)", "Cannot check whether object has a number key"),
        ('delpaths(["a"])', "Path must be specified as array, not string"),
        ('.a | delpaths([["x"]])', "Cannot delete string element of array"),
        ("{(.n): 1}", "Cannot use number as object key"),
        (".o | @csv", "object cannot be csv-formatted, only array"),
        ("[.o] | @sh", "object can not be escaped for shell"),
        (".s | test({})", "object not a string or array"),
        ("path(.s | ascii_downcase)", "Invalid path expression"),
        (".s | fromjson", "a text is not JSON"),
        ('.s | strptime("%Y")', "a date does not match the format"),
        ('.s | test("(hunter22")', "Regex failure: the pattern is not valid"),
        (".n | explode", "explode input must be a string"),
        ("error(.s)", UNKNOWN),
        ("error(.o)", UNKNOWN),
        ("error", UNKNOWN),
        ("error(null)", UNKNOWN),
        (".s | @base64d", "string is not valid base64 data"),
        (".s | test(.; .)", UNKNOWN),
        (".s | modulemeta", UNKNOWN),
    ],
)
def test_failure_messages_contain_no_value(program: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is jq's own
        jq.compile(program).input_value(VALUE).all()
    assert without_values(str(caught.value)) == said


@given(st.text(), st.sampled_from(["{}", "string ({}) has no keys", 'date "{}" does not match format "{}"', "x {}"]))
def test_quoted_values_do_not_change_the_message(quoted: str, message: str) -> None:
    value = f"hunter22{quoted}"
    assert without_values(message.replace("{}", value)) == without_values(message.replace("{}", "hunter22"))
