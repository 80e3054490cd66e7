"""What one server grants its clients: sizes in bytes, times in seconds."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The bounds of a server; ValueError unless all are positive (a body limit of 0 is one too).

    At worst it holds ``connections * (header_bytes + body_bytes)`` of requests in memory.
    """

    header_bytes: int = 32 * 1024
    """Request line and headers together; more is answered with 431."""
    body_bytes: int = 4 * 1024 * 1024
    """A request body; more is answered with 413."""
    idle_s: float = 120.0
    """How long a connection may wait for its next request to begin."""
    header_read_s: float = 10.0
    """From the first byte of a request to the end of its head; then 408."""
    body_read_s: float = 60.0
    """From the end of a request's head to the end of its body; then 408."""
    write_s: float = 30.0
    """For the client to take one whole response, or one chunk of a streamed one; then the connection is dropped."""
    connections: int = 256
    """Connections served at once. The next ones displace idle ones, or wait to be served."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: float = getattr(self, limit.name)
            if not value >= (0 if limit.name == "body_bytes" else 0.001):
                raise ValueError(f"the limit {limit.name} cannot be {value}")
