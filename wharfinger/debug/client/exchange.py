"""One request to the debug socket and its answer, without an event loop.

This module keeps the start of a command fast: importing an event loop and a client with connection pools takes longer than the
request itself, and importing the standard library's HTTP client, with its mail parser, takes as long as an empty Python program.
The server is always :mod:`wharfinger.httpd`, which sends a Content-Length with every answer that it does not stream. An answer
without a Content-Length is read only if the question allows a streamed answer.
"""

import errno
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlencode

from wharfinger.debug.errors import NoDaemonError
from wharfinger.runtime.paths import SOCKET_VARIABLE, too_long_socket

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
MAX_HEAD_BYTES: Final = 64 * 1024
CONNECT_S: Final = 5.0
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"
_CHUNK: Final = 256 * 1024
_MAX_DIGITS: Final = 12
_BAD_CHUNKS: Final = "the answer is not HTTP: one of its chunks is malformed"
_CLOSED: Final = "the connection was closed before the answer was complete"
ESCAPED: Final = "surrogateescape"
"""The error handler for the encoding of requests: bytes that are not UTF-8 are sent unchanged, and the daemon refuses them."""
_REMEDY: Final = f"start `wharfinger run`, or name its socket with --socket or {SOCKET_VARIABLE}"
_T = TypeVar("_T")


class Question(NamedTuple):
    """A request to the daemon. Its method is POST if it has a ``body``, otherwise GET. ``wait_s`` limits each wait for the
    daemon.

    ``streamed`` is True if the answer may arrive in chunks. Such an answer is complete when the last chunk has arrived.
    """

    route: str
    parameters: Mapping[str, str]
    wait_s: float
    body: bytes | None = None
    streamed: bool = False


class Reply(NamedTuple):
    """An answer. ``body`` is None if it was not read, because its size is unknown or over the limit."""

    status: int
    body: bytes | None


Exchange: TypeAlias = Callable[[Path, Question], Awaitable[Reply]]
"""The function that sends a request to a socket. Raises NoDaemonError."""


class _AnswerError(OSError):
    """The answer is not HTTP, or is shorter than its Content-Length."""


async def exchange_blocking(path: Path, question: Question) -> Reply:
    """Send a request and return the answer. It blocks its thread and never yields to an event loop; see `run_without_loop`.

    Raises NoDaemonError if no daemon answers.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            # SO_SNDTIMEO waits while the listener's backlog is full. With Python's own timeout, connect() would not wait.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_S), 0))
            connection.connect(str(path))
            connection.settimeout(question.wait_s)
            connection.sendall(_request(question))
            return _reply(connection, streamed=question.streamed)
    except OSError as error:
        raise _no_daemon(path, error) from error


def _request(question: Question) -> bytes:
    target = question.route + (f"?{urlencode(question.parameters, errors=ESCAPED)}" if question.parameters else "")
    lines = [f"{'GET' if question.body is None else 'POST'} {target} HTTP/1.1", "Host: daemon", "Connection: close"]
    if question.body is not None:
        lines.append(f"Content-Length: {len(question.body)}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (question.body or b"")


def _reply(connection: socket.socket, *, streamed: bool) -> Reply:
    """Read the answer. Raises OSError."""
    data = bytearray()
    while (end := data.find(_HEAD_END)) < 0:
        if len(data) > MAX_HEAD_BYTES:
            raise _AnswerError("the answer is not HTTP")
        data += _received(connection)
    head, body = bytes(data[:end]).decode("latin-1"), data[end + len(_HEAD_END) :]
    status, *fields = head.split("\r\n")
    version, _, rest = status.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise _AnswerError("the answer is not HTTP")
    headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    length = headers.get("content-length", "")
    if streamed and headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(int(rest[:3]), _chunks(connection, body))
    # An answer without a length is not read, because it could be endless.
    if not (length.isascii() and length.isdigit() and len(length) <= _MAX_DIGITS and int(length) <= MAX_ANSWER_BYTES):
        return Reply(int(rest[:3]), None)
    while len(body) < int(length):
        body += _received(connection)
    return Reply(int(rest[:3]), bytes(body[: int(length)]))


def _chunks(connection: socket.socket, data: bytearray) -> bytes | None:
    """Read the chunks of a streamed answer; ``data`` has been received already. Return None if they exceed the limit.

    Raises OSError.
    """
    found = bytearray()
    while True:
        while (end := data.find(_LINE_END)) < 0:
            if len(data) > MAX_HEAD_BYTES:
                raise _AnswerError(_BAD_CHUNKS)
            data += _received(connection)
        size = _size(bytes(data[:end]))
        if len(found) + size > MAX_ANSWER_BYTES:
            return None
        begin, whole = end + len(_LINE_END), end + size + 2 * len(_LINE_END)
        while len(data) < whole:
            data += _received(connection)
        if size == 0:
            return bytes(found)
        found += data[begin : begin + size]
        del data[:whole]


def _size(line: bytes) -> int:
    """Parse the size of a chunk from the line before it. Raises _AnswerError."""
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > _MAX_DIGITS or digits.strip(b"0123456789abcdefABCDEF"):
        raise _AnswerError(_BAD_CHUNKS)
    return int(digits, 16)


def _received(connection: socket.socket) -> bytes:
    found = connection.recv(_CHUNK)
    if not found:
        raise _AnswerError(_CLOSED)
    return found


def run_without_loop(coroutine: Coroutine[object, None, _T]) -> _T:
    """Run a coroutine that never yields to an event loop, and return its result. Raises its errors."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    coroutine.close()
    raise AssertionError("the coroutine of a command waited for an event loop, and there is none")


def _no_daemon(path: Path, error: OSError) -> NoDaemonError:
    if problem := too_long_socket(path):
        return NoDaemonError(f"debug socket {path}: {problem}; name a shorter one with --socket or {SOCKET_VARIABLE}")
    if isinstance(error, TimeoutError | BlockingIOError):
        return NoDaemonError(f"the daemon on {path} does not answer in time; check whether it is stopped or busy")
    match error.errno:
        case errno.ENOENT:
            return NoDaemonError(f"no daemon answers on {path}: no such socket; {_REMEDY}")
        case errno.ECONNREFUSED if path.is_dir():
            inside = path / "run" / "debug.sock"
            advice = f"the socket in it is {inside}" if inside.is_socket() else "name a socket"
            return NoDaemonError(f"no daemon answers on {path}: it is a folder; {advice}")
        case errno.ECONNREFUSED if not path.is_socket():
            return NoDaemonError(f"no daemon answers on {path}: the file is not a socket; {_REMEDY}")
        case errno.ECONNREFUSED:
            return NoDaemonError(f"no daemon answers on {path}: the daemon of this socket has exited; {_REMEDY}")
        case errno.EACCES | errno.EPERM:
            return NoDaemonError(
                f"the socket {path} belongs to another user; run this command as the daemon's user or as root"
            )
        case _:
            return NoDaemonError(f"no daemon answers on {path}: {str(error) or _CLOSED}; {_REMEDY}")
