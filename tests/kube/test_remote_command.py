"""The two ends of a remote command over one WebSocket. Each stream arrives as it was sent, however its bytes are divided into
pieces. Broken input is refused."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, Ping, TextMessage

from wharfinger.formats.json.value import encode_json
from wharfinger.kube.remote_command import (
    PIECE_BYTES,
    Arrived,
    Channel,
    ChannelEnded,
    RemoteStreams,
    SocketClosed,
    StreamError,
    StreamEvent,
    accept_token,
    error_status,
    exit_status,
    read_exit_status,
)


def received(end: RemoteStreams, data: bytes, size: int = 65536) -> list[StreamEvent]:
    return [event for start in range(0, len(data), size) for event in end.receive(data[start : start + size])]


def merged(events: list[StreamEvent]) -> list[StreamEvent]:
    """Return the events, with adjacent parts of one stream joined."""
    found: list[StreamEvent] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, Arrived) and isinstance(last, Arrived) and event.channel == last.channel:
            found[-1] = Arrived(last.channel, last.data + event.data)
        else:
            found.append(event)
    return found


PARTS = st.lists(st.tuples(st.sampled_from(Channel), st.binary(max_size=400)), max_size=12)


@given(parts=PARTS, size=st.integers(1, 50), client=st.booleans())
def test_streams_arrive_as_they_were_sent(parts: list[tuple[Channel, bytes]], size: int, *, client: bool) -> None:
    sender, receiver = RemoteStreams(client=client), RemoteStreams(client=not client)
    data = b"".join(sender.send(channel, part) for channel, part in parts) + sender.end(Channel.STDIN) + sender.close()
    expected: list[StreamEvent] = [Arrived(channel, part) for channel, part in parts if part]
    assert merged(received(receiver, data, size)) == merged([*expected, ChannelEnded(0), SocketClosed()])
    assert RemoteStreams.receive(sender, receiver.replies()) == [SocketClosed()]
    assert (sender.close(), receiver.close()) == (b"", b"")


def test_a_long_part_is_sent_in_pieces() -> None:
    sender, receiver = RemoteStreams(client=True), RemoteStreams(client=False)
    data = bytes(3 * PIECE_BYTES + 5)
    assert merged(received(receiver, sender.send(Channel.STDIN, data))) == [Arrived(0, data)]
    assert sender.send(Channel.STDIN, b"") == b""


def test_a_ping_is_answered() -> None:
    peer, end = Connection(ConnectionType.CLIENT), RemoteStreams(client=False)
    assert end.receive(peer.send(Ping(payload=b"x"))) == []
    peer.receive_data(end.replies())
    assert [type(event).__name__ for event in peer.events()] == ["Pong"]
    assert end.replies() == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 20,
        Connection(ConnectionType.CLIENT).send(TextMessage(data="0text")),
        Connection(ConnectionType.CLIENT).send(BytesMessage(data=b"\x07x")),
        Connection(ConnectionType.SERVER).send(BytesMessage(data=b"\x00not masked")),
    ],
)
def test_invalid_messages_are_refused(data: bytes) -> None:
    with pytest.raises(StreamError):
        RemoteStreams(client=False).receive(data)


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(StreamError):
        RemoteStreams(client=False).receive(data)


def test_the_end_of_the_connection_is_reported() -> None:
    assert RemoteStreams(client=True).receive(b"") == [SocketClosed()]


def test_nothing_is_sent_after_the_close() -> None:
    end = RemoteStreams(client=True)
    end.close()
    with pytest.raises(StreamError, match="closed"):
        end.send(Channel.STDIN, b"x")


def test_the_accept_token_is_that_of_the_rfc() -> None:
    assert accept_token("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("code", [0, 1, 3, 137, 255])
def test_exit_codes_are_read_back(code: int) -> None:
    assert read_exit_status(encode_json(exit_status(code))) == code


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode_json(error_status("no such container")), "no such container"),
        (b"nonsense", "expected the status"),
        (b"[]", "expected the status"),
        (
            json.dumps(
                {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "-1"}]}}
            ).encode(),
            "not known",
        ),
        (b"", "expected the status"),
    ],
)
def test_other_statuses_are_read_as_messages(data: bytes, message: str) -> None:
    found = read_exit_status(data)
    assert isinstance(found, str)
    assert message in found
