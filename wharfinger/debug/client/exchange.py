"""One request to the debug socket and its answer, by the standard library's HTTP client and without an event loop.

Commands start in the time that this takes: importing an event loop and a client with connection pools takes longer than the
request itself.
"""

import errno
import http.client
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlencode

from wharfinger.debug.errors import NoDaemonError
from wharfinger.runtime.paths import SOCKET_VARIABLE

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
CONNECT_S: Final = 5.0
_REMEDY: Final = f"is `wharfinger run` running? (--socket / {SOCKET_VARIABLE})"
_T = TypeVar("_T")


class Question(NamedTuple):
    """A request. With a ``body`` its method is POST, otherwise GET; ``wait_s`` bounds each wait for the daemon."""

    route: str
    parameters: Mapping[str, str]
    wait_s: float
    body: bytes | None = None


class Reply(NamedTuple):
    """The answer: its status, and its body; None if the body was not read, because it is not known to be of a bounded size."""

    status: int
    body: bytes | None


Exchange: TypeAlias = Callable[[Path, Question], Awaitable[Reply]]
"""The function that sends a request to a socket. Raises NoDaemonError."""


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: Path, wait_s: float) -> None:
        super().__init__("daemon")
        self._path = path
        self._wait_s = wait_s

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        # With a timeout of Python's, connecting fails at once while the queue of the listener is full; this waits for a place.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_S), 0))
        self.sock.connect(str(self._path))
        self.sock.settimeout(self._wait_s)


async def exchange_blocking(path: Path, question: Question) -> Reply:
    """Send a request and return the answer. It blocks its thread and never yields to an event loop; see `finish`.

    Raises NoDaemonError if no daemon answers.
    """
    target = question.route + (f"?{urlencode(question.parameters)}" if question.parameters else "")
    connection = _UnixConnection(path, question.wait_s)
    try:
        connection.request("GET" if question.body is None else "POST", target, question.body)
        response = connection.getresponse()
        # The server sends the length of its answer first, so an endless answer is never read.
        bounded = response.length is not None and response.length <= MAX_ANSWER_BYTES
        return Reply(response.status, response.read() if bounded else None)
    except (OSError, http.client.HTTPException) as error:
        raise _no_daemon(path, error) from error
    finally:
        connection.close()


def finish(coroutine: Coroutine[object, None, _T]) -> _T:
    """Run a coroutine that never yields to an event loop, and return its result. Raises its errors."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    coroutine.close()
    raise AssertionError("a question of a command waits for an event loop")


def _no_daemon(path: Path, error: OSError | http.client.HTTPException) -> NoDaemonError:
    if isinstance(error, TimeoutError | BlockingIOError):
        return NoDaemonError(f"the daemon on {path} does not answer in time; check whether it is stopped or busy")
    match error.errno if isinstance(error, OSError) else None:
        case errno.ENOENT:
            return NoDaemonError(f"no daemon answers on {path}: no such socket; {_REMEDY}")
        case errno.ECONNREFUSED:
            return NoDaemonError(f"no daemon answers on {path}: the socket's daemon has exited; {_REMEDY}")
        case errno.EACCES | errno.EPERM:
            return NoDaemonError(f"the socket {path} belongs to another user; run this as the daemon's user or as root")
        case _:
            return NoDaemonError(f"no daemon answers on {path}: {str(error) or 'closed'}; {_REMEDY}")
