"""Numbers, times, base64 and quantities, parsed as in Go: edge cases that no recording of a real API server covers."""

import pytest

from wharfinger.kube.go_texts import GoFormatError, read_base64, read_number, read_quantity, read_time


@pytest.mark.parametrize(
    ("text", "micro", "result"),
    [
        ("2024-02-29T00:00:00Z", False, "2024-02-29T00:00:00Z"),
        ("2024-02-29T00:00:00.123456789+02:00", False, "2024-02-28T22:00:00Z"),
        ("2024-02-29T5:00:00,5Z", False, "2024-02-29T05:00:00Z"),
        ("2024-02-29T05:00:00.000001-00:30", True, "2024-02-29T05:30:00.000001Z"),
        ("0000-01-01T00:00:00Z", False, "0000-01-01T00:00:00Z"),
    ],
)
def test_times_are_read(text: str, micro: bool, result: str) -> None:
    assert read_time(text, micro=micro) == result


@pytest.mark.parametrize(
    ("text", "micro", "words"),
    [
        ('a"\\é', False, 'parsing time "a\\"\\\\\\xc3\\xa9" as "2006-01-02T15:04:05Z07:00": cannot parse'),
        ("2024-02-30T00:00:00Z", False, "day out of range"),
        ("2024-02-10T24:00:00Z", False, "hour out of range"),
        ("2024-02-10T00:60:00Z", False, "minute out of range"),
        ("2024-02-10T00:00:00+25:00", False, 'cannot parse "+25:00" as "Z07:00"'),
        ("2024-02-10T00:00:00Zx", False, 'extra text: "x"'),
        ("0001-01-01T00:00:00+02:00", False, "year out of range"),
        ("2024-02-10T00:00:00.1Z", True, 'cannot parse ".1Z" as ".000000"'),
    ],
)
def test_invalid_times_are_refused(text: str, micro: bool, words: str) -> None:
    with pytest.raises(GoFormatError) as caught:
        read_time(text, micro=micro)
    assert words in str(caught.value)


def test_base64_is_returned_in_canonical_form() -> None:
    assert read_base64("YR==") == "YQ=="
    assert read_base64("YW\r\nJj\n") == "YWJj"


@pytest.mark.parametrize(
    ("text", "place"),
    [("x", 0), ("YQ", 0), ("Y!==", 1), ("YWJj=", 4), ("YQ=a", 2), ("YQ==YQ==", 4), ("YQ=", 3), ("=", 0), ("YWI=x", 4)],
)
def test_invalid_base64_is_refused(text: str, place: int) -> None:
    with pytest.raises(GoFormatError, match=f"illegal base64 data at input byte {place}$"):
        read_base64(text)


@pytest.mark.parametrize(
    ("text", "result"), [(" 0.5Gi ", "512Mi"), ("1e3", "1e3"), (".", "0"), ("Gi", "0"), ("-", "0")]
)
def test_quantities_are_read(text: str, result: str) -> None:
    assert read_quantity(text) == result


@pytest.mark.parametrize(
    ("text", "words"), [("", "must match"), ("1.2.3", "must match"), ("1Gii", "suffix"), ("++1", "suffix")]
)
def test_invalid_quantities_are_refused(text: str, words: str) -> None:
    with pytest.raises(GoFormatError, match=words):
        read_quantity(text)


@pytest.mark.parametrize(
    ("text", "signed", "expected"),
    [
        ("9" * 5000, False, "value out of range"),
        ("-" + "9" * 5000, True, "value out of range"),
        (str(2**64), False, "value out of range"),
        (str(2**63), True, "value out of range"),
        ("-1", False, "invalid syntax"),
        ("\u0661", True, "invalid syntax"),
    ],
)
def test_invalid_numbers_are_refused(text: str, signed: bool, expected: str) -> None:
    assert read_number(text, signed=signed)[1] == expected


def test_numbers_are_read() -> None:
    assert read_number("0" * 5000 + "7") == (7, "")
    assert read_number(str(2**64 - 1)) == (2**64 - 1, "")
    assert read_number(str(-(2**63)), signed=True) == (-(2**63), "")
    assert read_number("+5", signed=True) == (5, "")
