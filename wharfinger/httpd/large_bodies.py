"""A limit on the memory for large request bodies; all connections of a server share it.

Without this limit, a server could need memory for a body of the largest size on each of its connections. Bodies of at most
SMALL_BODY bytes are not counted, so that large requests never keep small ones out. A client that announces a large body and
does not send it loses its connection if another client needs the memory, or if the server has no connections left.
"""

from typing import Final, Protocol

from wharfinger.httpd.target import RefusedRequestError

SMALL_BODY: Final = 1024 * 1024


class BodyHolder(Protocol):
    """The methods of a connection that `LargeBodies` uses."""

    @property
    def slow(self) -> bool:
        """Return whether the client has left its request incomplete for a while."""
        ...

    def retire(self, reason: str) -> None:
        """Close the connection immediately if its client is `slow`, otherwise after the current answer."""
        ...


class LargeBodies:
    """The memory of one server for large bodies; ``most`` is its size in bytes, 0 for no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._held: dict[BodyHolder, int] = {}
        """The number of bytes that are reserved for the present request of each connection, in the order of the reservations."""

    def take(self, holder: BodyHolder, size: int) -> None:
        """Reserve memory for the body of a request, unless the connection has reserved some already.

        If there is not enough memory, slow connections are closed. Raises RefusedRequestError (503) if that does not free enough.
        """
        if not self._most or size <= SMALL_BODY or holder in self._held:
            return
        while self._taken + size > self._most:
            slow = next((each for each in self._held if each.slow), None)
            if slow is None:
                raise RefusedRequestError(503, "the server holds too many large requests; try again later")
            self.give_back(slow)
            slow.retire("the body of another client needs the memory")
        self._held[holder] = size
        self._taken += size

    def give_back(self, holder: BodyHolder) -> None:
        """Release the memory that is reserved for a connection, if any."""
        self._taken -= self._held.pop(holder, 0)
