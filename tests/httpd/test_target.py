"""The strict parser of request targets."""

from urllib.parse import parse_qs, quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.httpd.target import MAX_PARAMETERS, RefusedRequestError, Target, parse_query, parse_target

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc"]))


@pytest.mark.parametrize(
    ("raw", "path", "query"),
    [
        (b"/", "/", {}),
        (b"*", "*", {}),
        (b"/a%20b//c/", "/a b//c/", {}),
        (b"/caf%C3%A9?caf%C3%A9=%E2%9C%93", "/café", {"café": ("✓",)}),
        (b"/?a=1&b=2&a=3", "/", {"a": ("1", "3"), "b": ("2",)}),
        (b"/?a&b=&&c==", "/", {"a": ("",), "b": ("",), "c": ("=",)}),
        (b"/?labelSelector=a+in+(b%2Cc)%2Bd", "/", {"labelSelector": ("a in (b,c)+d",)}),
        (b"/?a=1?2", "/", {"a": ("1?2",)}),
        (b"http://host:80/a?b=c", "/a", {"b": ("c",)}),
        (b"HTTPS://host", "/", {}),
        (b"http://host?b=c", "/", {"b": ("c",)}),
        (b"/http://other/", "/http://other/", {}),
    ],
)
def test_valid_targets_are_parsed(raw: bytes, path: str, query: dict[str, tuple[str, ...]]) -> None:
    assert parse_target(raw) == Target(path, query)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"/%", "percent"),
        (b"/%4", "percent"),
        (b"/%zz", "percent"),
        (b"/%%20", "percent"),
        (b"/?a=%1", "percent"),
        (b"/?%g0=1", "percent"),
        (b"/% 20", "percent"),
        (b"/%ff", "UTF-8"),
        (b"/\xff", "UTF-8"),
        (b"/?a=%c0%af", "UTF-8"),
        (b"/%00", "control"),
        (b"/a%0d%0aX: y", "control"),
        (b"/%7f", "control"),
        (b"/a#b", "fragment"),
        (b"", "neither"),
        (b"a", "neither"),
        (b"host:443", "neither"),
        (b"file:///etc/passwd", "neither"),
        (b"?a=1", "neither"),
        (b"/?" + b"&".join([b"a=1"] * (MAX_PARAMETERS + 1)), "parameters"),
        (b"/?" + b"a&" * 100_000, "parameters"),
    ],
)
def test_invalid_targets_are_refused(raw: bytes, why: str) -> None:
    with pytest.raises(RefusedRequestError, match=why) as refused:
        parse_target(raw)
    assert refused.value.status == 400


@given(PRINTABLE, st.dictionaries(TEXT, st.lists(TEXT, min_size=1, max_size=3), max_size=5))
def test_an_encoded_target_is_decoded_to_the_same_text(path: str, query: dict[str, list[str]]) -> None:
    raw = f"/{quote(path)}?{urlencode(query, doseq=True)}".encode()
    assert parse_target(raw) == Target("/" + path, {key: tuple(values) for key, values in query.items()})


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        target = parse_target(raw)
    except RefusedRequestError:
        return
    assert target.path == "*" or target.path.startswith("/")
    assert not any(character < " " or character == "\x7f" for character in target.path)


@given(st.text("abc=&+%", max_size=40))
def test_queries_are_read_as_the_standard_library_reads_them(raw: str) -> None:
    try:
        ours = parse_query(raw.encode())
    except RefusedRequestError:
        return
    assert {key: list(values) for key, values in ours.items()} == parse_qs(raw, keep_blank_values=True)
