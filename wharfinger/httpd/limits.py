"""The limits of a server: sizes in bytes, times in seconds."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of a server. Raises ValueError unless all are positive (a body limit of 0 is allowed too).

    In the worst case a server holds ``connections * (header_bytes + body_bytes)`` of requests in memory.
    """

    header_bytes: int = 32 * 1024
    """The size of request line and headers together; a larger head is answered with 431."""
    body_bytes: int = 4 * 1024 * 1024
    """The size of a request body; a larger one is answered with 413."""
    idle_s: float = 120.0
    """The time within which the next request on a connection must begin."""
    header_read_s: float = 10.0
    """The time from the first byte of a request to the end of its head; then the answer is 408."""
    body_read_s: float = 60.0
    """The time from the end of a request's head to the end of its body; then the answer is 408."""
    write_s: float = 30.0
    """The time within which a client must receive a whole response, or one streamed chunk; then the connection is dropped."""
    connections: int = 256
    """The number of connections served at once. Further connections displace idle ones, or wait to be served."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: float = getattr(self, limit.name)
            if not value >= (0 if limit.name == "body_bytes" else 0.001):
                raise ValueError(f"the limit {limit.name} cannot be {value}")
