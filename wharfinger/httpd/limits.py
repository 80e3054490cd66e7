"""The limits of a server: sizes in bytes, times in seconds."""

from dataclasses import dataclass, fields
from typing import Final

_MAY_BE_ZERO: Final = frozenset(
    {"body_bytes", "large_bodies_bytes", "linger_bytes", "useless_pause_s", "closed_pause_s", "piece_pause_s"}
)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The limits of a server. ``body_bytes``, ``large_bodies_bytes``, ``linger_bytes`` and the pauses may be 0.

    Raises ValueError if one of these limits is negative, or if any other limit is below 0.001.

    In the worst case, a server holds ``connections * (header_bytes + body_bytes)`` bytes of requests in memory. If
    ``large_bodies_bytes`` is not 0, the bound is ``large_bodies_bytes + connections * (header_bytes + SMALL_BODY)``.
    """

    header_bytes: int = 32 * 1024
    """The maximum size of the request line and the headers together; a larger head is answered with 431."""
    body_bytes: int = 4 * 1024 * 1024
    """The maximum size of a request body; a larger one is answered with 413."""
    large_bodies_bytes: int = 0
    """The maximum total size of all request bodies above SMALL_BODY that are received at the same time, as their requests
    declare it. A request that exceeds it is answered with 503. 0 means no limit.
    """
    idle_s: float = 120.0
    """The time within which the next request on a connection must begin."""
    header_read_s: float = 10.0
    """The longest time from the first byte of a request to the end of its head; after it, the answer is 408."""
    body_read_s: float = 60.0
    """The longest time from the end of a request's head to the end of its body; after it, the answer is 408."""
    write_s: float = 30.0
    """The time within which a client must receive a whole response, or one streamed chunk; after it, the connection is
    dropped.
    """
    connections: int = 256
    """The maximum number of open connections. A further connection waits until another one has ended."""
    of_process: int = 1_000_000
    """The maximum number of open connections of one process over a Unix socket. Further connections of that process are
    closed immediately.
    """
    linger_bytes: int = 16 * 1024 * 1024
    """The maximum number of bytes that are read and discarded after an invalid request, so that the client can read the
    answer.
    """
    useless_pause_s: float = 0.0
    """The pause that a useless connection causes. A connection is useless if it ended after an invalid request, or without a
    valid request. The pauses are added up, and the server waits for the sum before it accepts the next connection. This limits
    the processor time that clients can use up with useless connections.
    """
    closed_pause_s: float = 0.0
    """The pause that a connection causes if the server has closed it because of ``of_process``; otherwise as
    ``useless_pause_s``.
    """
    piece_pause_s: float = 0.0
    """The pause between the receipt of a small piece of a request and the next read. It doubles with each such piece, up to 64
    times this value.
    """

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: float = getattr(self, limit.name)
            if not value >= (0 if limit.name in _MAY_BE_ZERO else 0.001):
                raise ValueError(f"the limit {limit.name} cannot be {value}")
