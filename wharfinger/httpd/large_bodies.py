"""The room for large request bodies, which all connections of a server share.

A server whose clients are not known must not hold as many of the largest bodies as it has connections. Bodies of at most
SMALL_BODY bytes are not counted, so that large requests never keep small ones out.
"""

from typing import Final

from wharfinger.httpd.target import RefusedRequestError

SMALL_BODY: Final = 1024 * 1024


class LargeBodies:
    """The room of one server; ``most`` is its size in bytes, 0 for no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    def take(self, size: int) -> int:
        """Take room for a body, and return how much was taken. Raises RefusedRequestError (503) if there is not enough."""
        if not self._most or size <= SMALL_BODY:
            return 0
        if self._taken + size > self._most:
            raise RefusedRequestError(503, "the server holds too many large requests; try again later")
        self._taken += size
        return size

    def give_back(self, size: int) -> None:
        """Give back what `take` returned."""
        self._taken -= size
