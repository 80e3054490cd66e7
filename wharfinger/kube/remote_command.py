"""The streams of `exec` over one WebSocket (``v5.channel.k8s.io``), for the client's and the server's end. Pure.

Each binary message begins with the number of its channel: stdin, stdout, stderr, error or resize. The error channel carries one
Status at the end of the command; the resize channel carries the size of a terminal. The number CLOSE, followed by the number of a
channel, is a message that ends this channel. A client sends it at the end of its stdin. Earlier versions of the protocol have no
such message. The library wsproto encodes and decodes the frames.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from wharfinger.formats.json.value import (
    JsonError,
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    decode_json,
    find,
    find_list,
)

PROTOCOL: Final = "v5.channel.k8s.io"
"""The subprotocol of the WebSocket."""
CLOSE: Final = 255
PIECE_BYTES: Final = 32 * 1024
"""The largest part of a stream that is sent in one message."""
MAX_STATUS_BYTES: Final = 64 * 1024
_ACCEPT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NORMAL: Final = (CloseReason.NORMAL_CLOSURE, CloseReason.GOING_AWAY, CloseReason.NO_STATUS_RCVD)
_EXIT_CODE: Final = "ExitCode"
_SHORT_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class Channel(IntEnum):
    """The streams, by the numbers of their channels."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4


class StreamError(Exception):
    """The other end broke the protocol, or the WebSocket is closed; the connection cannot be used any more."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """An event: a part of a stream has arrived."""

    channel: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """An event: a stream has ended."""

    channel: int


@dataclass(frozen=True, slots=True)
class SocketClosed:
    """An event: the other end has closed the WebSocket."""


StreamEvent: TypeAlias = Arrived | ChannelEnded | SocketClosed


class RemoteStreams:
    """One end of the WebSocket. The caller sends the bytes that the methods return, in order; nothing is sent after `close`."""

    def __init__(self, *, client: bool) -> None:
        self._socket = Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER)
        self._channel: int | None = None
        """The channel of the message that is arriving."""
        self._replies: list[bytes] = []

    def send(self, channel: Channel, data: bytes) -> bytes:
        """Return the messages that carry a part of a stream."""
        view = memoryview(data)
        pieces = (view[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
        return b"".join(self._message(bytes([channel]) + piece) for piece in pieces)

    def end(self, channel: Channel) -> bytes:
        """Return the message that ends a stream."""
        return self._message(bytes([CLOSE, channel]))

    def close(self) -> bytes:
        """Return the frame that closes the WebSocket; no bytes if it is closed already."""
        try:
            return self._socket.send(CloseConnection(code=1000))
        except LocalProtocolError:
            return b""

    def receive(self, data: bytes) -> list[StreamEvent]:
        """Return the events in received data; empty ``data`` means that the connection has ended. Raises StreamError."""
        if not data:
            return [SocketClosed()]
        try:
            self._socket.receive_data(data)
            return list(self._events())
        except (LocalProtocolError, RemoteProtocolError) as error:
            raise StreamError(f"expected frames of a WebSocket, found others: {error}") from error

    def replies(self) -> bytes:
        """Return the frames to send in reply to received ones: the answers to pings and to the close."""
        found = b"".join(self._replies)
        self._replies.clear()
        return found

    def _message(self, payload: bytes) -> bytes:
        try:
            return self._socket.send(BytesMessage(data=payload))
        except LocalProtocolError as error:
            raise StreamError("the WebSocket is closed") from error

    def _events(self) -> Iterator[StreamEvent]:
        for event in self._socket.events():
            match event:
                case BytesMessage():
                    yield from self._part(bytes(event.data), finished=event.message_finished)
                case TextMessage():
                    raise StreamError("expected binary messages, found text")
                case Ping():
                    self._replies.append(self._socket.send(event.response()))
                case CloseConnection():
                    self._replies.append(self.close())
                    if event.code not in _NORMAL:  # wsproto reports unreadable frames in this way, too
                        raise StreamError(
                            f"the WebSocket was closed with code {event.code}: {event.reason or 'no reason'}"
                        )
                    yield SocketClosed()
                case _:
                    pass  # a pong

    def _part(self, data: bytes, *, finished: bool) -> Iterator[StreamEvent]:
        """Yield the events of a part of a message. The first part that is not empty begins with the number of the channel."""
        channel = self._channel
        if channel is None and data:
            channel, data = data[0], data[1:]
            if channel not in (*Channel, CLOSE):
                raise StreamError(f"expected a channel from 0 to 4, or {CLOSE}, found {channel}")
        self._channel = None if finished else channel
        if channel == CLOSE:
            yield from (ChannelEnded(number) for number in data)
        elif channel is not None and data:
            yield Arrived(channel, data)


def accept_token(key: str) -> str:
    """Return the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455 §4.2.2)."""
    return base64.b64encode(hashlib.sha1(key.encode() + _ACCEPT).digest()).decode()  # noqa: S324 - the RFC demands it


def exit_status(code: int) -> JsonObject:
    """Return the Status that reports the exit code of a command."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    cause: JsonValue = {"reason": _EXIT_CODE, "message": str(code)}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [cause]},
    }


def error_status(message: str) -> JsonObject:
    """Return the Status that reports why a command could not be run."""
    return {"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500}


def read_exit_status(data: bytes) -> int | str:
    """Return the exit code of a command from its Status, or the message that says why the command did not run to its end."""
    try:
        status = as_object(decode_json(data, max_bytes=MAX_STATUS_BYTES, what="the status of a command"), "status")
        if find(status, "status") == "Success":
            return 0
        for cause in find_list(status, "details", "causes"):
            code = find(cause, "message")
            if find(cause, "reason") == _EXIT_CODE and isinstance(code, str) and _SHORT_NUMBER.fullmatch(code):
                return int(code)
        message = find(status, "message")
    except (JsonError, ShapeError) as error:
        return f"expected the status of a command, found something else: {error}"
    return str(message or "the command ended for a reason that is not known")
