import pytest

from wharfinger.formats.schemas.formats import FORMATS, OWN_FORMATS, format_checker

CASES = {
    "byte": (["", "aGk=", "aG\nk="], ["aGk", "é", "a*b="]),
    "cidr": (["10.0.0.0/8", "10.1.2.3/8", "fd00::/8"], ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "x/8", "9" * 300]),
    "date": (["2026-01-31"], ["2026-02-31", "31.01.2026"]),
    "date-time": (["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"], ["2026-01-31", "2026-01-31T12:00:00"]),
    "duration": (["0", "1h30m", "-2.5s", "300ms", "3 days", "1w 2d", "1µs"], ["", "1", "h", "P1D", "1 h x", "1s" * 200]),
    "email": (["a@example.com"], ["a", "@b"]),
    "hostname": (["a.example.com"], ["a_b", "-a", "a b"]),
    "ipv4": (["10.0.0.1"], ["10.0.0.256", "::1"]),
    "ipv6": (["::1"], ["10.0.0.1"]),
    "mac": (["00:1b:44:11:3a:b7", "00-1B-44-11-3A-B7", "001b.4411.3ab7"], ["00:1b", "00:1b:44-11:3a:b7", "0:" * 200]),
    "uri": (["https://a/b?c#d", "/a/b", "oci://r:5000/x"], ["", "a b", "relative/x", "http://a:b/", "http://[::1", "a\n"]),
    "uuid": (["0b8fd5c4-5f1c-4d5c-8f0a-0a0d8b0a5f1c"], ["0b8fd5c4"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_formats_accept_valid_and_refuse_invalid_texts(name: str) -> None:
    good, bad = CASES[name]
    checker = format_checker(name)

    assert [text for text in (*good, *bad) if checker.is_valid(text)] == good
    assert checker.is_valid(5)


def test_every_custom_format_check_is_used() -> None:
    assert set(OWN_FORMATS) < set(FORMATS)
