"""The line splitter and the event decoder, with hostile streams."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.api.test_raw_list import damaged
from tests.cluster.support.client_contract import CONFIG_MAP
from tests.scale import scaled
from wharfinger.cluster.api.errors import ApiError, GoneError
from wharfinger.cluster.api.raw_object import RawObject
from wharfinger.cluster.api.watch_stream import LineSplitter, WatchLineError, decode_event, decode_raw_event
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import find_str
from wharfinger.kube.resource import ObjectKey


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_do_not_depend_on_chunk_boundaries(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    splitter = LineSplitter("watch")
    seen: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += splitter.feed(stream[start:end])
    splitter.finish()
    assert seen == [stripped for line in lines if (stripped := line.strip())]
    assert splitter.held == 0


def test_a_line_over_the_limit_is_refused() -> None:
    with pytest.raises(WatchLineError, match="watch Pod: a line of the stream is over 10 bytes"):
        LineSplitter("watch Pod", 10).feed(b"12345678901\n")
    splitter = LineSplitter("watch Pod", 10)
    splitter.feed(b"12345678\n123456")
    with pytest.raises(WatchLineError):
        splitter.feed(b"78901")


def test_a_stream_that_ends_inside_a_line_is_an_error() -> None:
    splitter = LineSplitter("watch Pod")
    assert splitter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    with pytest.raises(WatchLineError, match="after 4 bytes"):
        splitter.finish()


def test_events_are_decoded() -> None:
    line = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}}'
    event = decode_event(line, "watch Pod")
    assert event.type is WatchType.ADDED
    assert event.object == {"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "7"}}
    bookmark = decode_event(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}', "watch Pod")
    assert bookmark.type is WatchType.BOOKMARK


def test_error_events_are_raised() -> None:
    with pytest.raises(GoneError, match="watch Pod: too old resource version"):
        decode_event(b'{"type":"ERROR","object":{"code":410,"message":"too old resource version"}}', "watch Pod")
    with pytest.raises(ApiError) as caught:
        decode_event(b'{"type":"ERROR","object":{"code":500,"reason":"InternalError","message":"etcd"}}', "watch Pod")
    assert caught.value.code == 500


NO_EVENTS = [
    b"",
    b"garbage",
    b"\xff",
    b"[" * 100_000,
    b"[]",
    b"1",
    b'{"type":1,"object":{}}',
    b'{"type":"ADDED"}',
    b'{"type":"ADDED","object":[]}',
    b'{"type":"ADDED","object":{}}',
    b'{"type":"ADDED","object":{"metadata":1}}',
    b'{"type":"ADDED","object":{"metadata":{"resourceVersion":7,"name":"a"}}}',
    b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}',
    b'{"type":"SOMETHING","object":{"metadata":{"resourceVersion":"7","name":"a"}}}',
    b'{"type":"BOOKMARK","object":{"metadata":{}}}',
]


@pytest.mark.parametrize("line", NO_EVENTS)
def test_malformed_events_are_refused(line: bytes) -> None:
    with pytest.raises(WatchLineError, match="watch Pod"):
        decode_event(line, "watch Pod")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_gives_an_event_or_a_typed_error(value: object) -> None:
    line = msgspec.json.encode({"type": "MODIFIED", "object": value})
    try:
        decode_event(line, "watch")
    except (WatchLineError, ApiError):
        return


# -- raw events


def test_raw_events_are_decoded() -> None:
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}}'
    event = decode_raw_event(b'{"type":"MODIFIED","object":' + text + b"}", CONFIG_MAP, "watch")
    assert event.type is WatchType.MODIFIED
    assert event.object == RawObject(ObjectKey(CONFIG_MAP, "b", "a"), "u", "7", text)
    bookmark = decode_raw_event(
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}', CONFIG_MAP, "watch"
    )
    assert (bookmark.type, bookmark.object.resource_version) == (WatchType.BOOKMARK, "9")
    assert (bookmark.object.key.name, bookmark.object.text) == ("", b"")


def test_raw_error_events_are_raised() -> None:
    with pytest.raises(GoneError, match="watch Pod: too old resource version"):
        decode_raw_event(
            b'{"type":"ERROR","object":{"code":410,"message":"too old resource version"}}', CONFIG_MAP, "watch Pod"
        )
    for odd in (b"5", b"[]", b'{"code":"\xff"}'):
        with pytest.raises(WatchLineError, match="watch Pod: ERROR event"):
            decode_raw_event(b'{"type":"ERROR","object":' + odd + b"}", CONFIG_MAP, "watch Pod")


@pytest.mark.parametrize(
    "line", [*NO_EVENTS, b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7","name":""}}}']
)
def test_malformed_raw_events_are_refused(line: bytes) -> None:
    with pytest.raises(WatchLineError, match="watch Pod"):
        decode_raw_event(line, CONFIG_MAP, "watch Pod")


def test_damaged_lines_raise_only_typed_errors_and_both_decoders_agree() -> None:
    chance = random.Random(6)  # noqa: S311 - the same inputs each time
    metadata = b'"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}'
    line = b'{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap",' + metadata + b',"data":{"x":"1"}}}'
    taken = 0
    for _ in range(scaled(100_000, 2_000)):
        made = damaged(line, chance)
        try:
            raw = decode_raw_event(made, CONFIG_MAP, "watch")
        except (WatchLineError, ApiError):
            continue
        taken += 1
        raw.object.text.decode()
        parsed = decode_event(made, "watch")
        assert parsed.type is raw.type
        assert find_str(parsed.object, "metadata", "name") == raw.object.key.name
    assert taken
