"""Two ways to frame the answer to a request: with h11 and, for ordinary requests, without it (:mod:`~wharfinger.httpd.lean`).

Both report their progress, so that the connection knows whether another request may follow.
"""

from typing import Protocol

import h11

from wharfinger.httpd.lean import LAST_CHUNK, write_chunk, write_head
from wharfinger.httpd.messages import Response, StreamingResponse
from wharfinger.httpd.reply import may_have_body, response_head


class Framing(Protocol):
    """The framing of one answer. Call the methods in order: ``head``, ``data`` for each piece of the body, ``end``."""

    @property
    def begun(self) -> bool:
        """Return whether a call of ``head`` has succeeded."""
        ...

    @property
    def over(self) -> bool:
        """Return whether the exchange is complete, so that another may follow."""
        ...

    def head(self, response: Response | StreamingResponse, *, close: bool) -> bytes:
        """Return the head as bytes. Raises ValueError or h11.LocalProtocolError for an invalid head."""
        ...

    def data(self, data: bytes) -> bytes:
        """Return a piece of the body with its frame."""
        ...

    def end(self) -> bytes:
        """Return the bytes that end the answer."""
        ...


class H11Framing:
    """The framing by h11, for a request that h11 has parsed."""

    def __init__(self, connection: h11.Connection) -> None:
        self._h11 = connection

    @property
    def begun(self) -> bool:
        return self._h11.our_state is not h11.SEND_RESPONSE and self._h11.our_state is not h11.IDLE

    @property
    def over(self) -> bool:
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    def head(self, response: Response | StreamingResponse, *, close: bool) -> bytes:
        return self._h11.send(response_head(response, close=close)) or b""

    def data(self, data: bytes) -> bytes:
        return self._h11.send(h11.Data(data=data)) or b""

    def end(self) -> bytes:
        return self._h11.send(h11.EndOfMessage()) or b""


class LeanFraming:
    """The framing of the answer to an ordinary request. Such a request uses HTTP/1.1, is not a HEAD request, and does not ask
    to close the connection.
    """

    def __init__(self) -> None:
        self.begun = False
        self._ended = False
        self._close = False
        self._chunked = False

    @property
    def over(self) -> bool:
        return self._ended and not self._close

    def head(self, response: Response | StreamingResponse, *, close: bool) -> bytes:
        head = write_head(response, close=close)
        if head is None:  # then h11 writes the head, or raises its error
            made = response_head(response, close=close)
            machine = h11.Connection(h11.SERVER)
            machine.receive_data(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            machine.next_event()
            machine.next_event()
            head = machine.send(made) or b""
        self.begun = True
        self._close = close
        self._chunked = isinstance(response, StreamingResponse) and may_have_body(response.status)
        return head

    def data(self, data: bytes) -> bytes:
        return write_chunk(data) if self._chunked else data

    def end(self) -> bytes:
        self._ended = True
        return LAST_CHUNK if self._chunked else b""
