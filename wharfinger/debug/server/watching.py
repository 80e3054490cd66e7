"""Documents that are followed: ``watch=1`` answers with the changes as JSON lines, until the client closes the connection.

Each line is an object with a ``type``:

* ``ADDED`` or ``MODIFIED`` with the present ``object``, or ``DELETED`` without an object. If a document is a list of packages,
  queues, nodes, pools, repositories, objects or Events, there is a line for each item that changed, with its ``kind`` and
  ``name``. For the log, there is a line for each new line of the log. A change of any other document is reported as a whole, in
  one line. The first lines report everything that exists.
* ``DROPPED`` with a ``count``: this number of log lines was lost before this watch could send them.
* ``BOOKMARK``: nothing has changed for BOOKMARK_S seconds.
* ``ERROR`` with a ``message``: the watch ends.

The daemon polls the document, as a client would, so that code that changes something need not notify a watch. A watch keeps one
digest for each item, but no lines that wait to be sent: while the client does not read, the daemon does not poll, and after
LIMITS.write_s seconds the connection is closed. There are at most MOST_WATCHES, and the polls of all of them together take at
most 1/SHARE of the time.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec
import trio

from wharfinger.debug.addresses import AFTER, LOGS, WATCH
from wharfinger.debug.server.answers import text_answer
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    canonical_json,
    encode_json,
    find_int,
    find_list,
    find_str,
)
from wharfinger.formats.terminal_text import json_printable
from wharfinger.httpd.messages import Answer, Request, Response, StreamingResponse

MOST_WATCHES: Final = 16
PAUSE_S: Final = 1.0
SHARE: Final = 10.0
BOOKMARK_S: Final = 30.0
MEDIA_TYPE: Final = "application/x-ndjson"
FLAGS: Final[Mapping[str, bool]] = {"0": False, "1": True, "false": False, "true": True}
_MAPS: Final = frozenset({"apps", "modules", "queues", "nodes", "pools", "repositories"})
_LISTS: Final = frozenset({"resources", "events"})
_FULL: Final = f"{MOST_WATCHES} watches are open already; close one, or ask again later"
_KEYS: Final = ("package", "kind", "api_version", "namespace", "name", "type", "reason", "subject", "message", "first")

Poll: TypeAlias = Callable[[Request], Awaitable[Response]]


class _Item(NamedTuple):
    kind: str
    name: str


class Watches:
    """All watches of one server."""

    def __init__(self) -> None:
        self.open = 0

    async def answer(self, poll: Poll, request: Request) -> Answer:
        """Follow the document that ``poll`` returns. If the document is refused, or there are too many watches, return the
        refusal instead of a stream.
        """
        if request.arg("output", "json") != "json":
            return text_answer(
                HTTPStatus.BAD_REQUEST, f"{WATCH}: expected output=json, because the answer is JSON lines"
            )
        if self.open >= MOST_WATCHES:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
        query = {key: values for key, values in request.query.items() if key != WATCH}
        followed = msgspec.structs.replace(request, query=query)
        first = await poll(followed)
        if first.status != HTTPStatus.OK:
            return first
        if self.open >= MOST_WATCHES:  # other watches may have been opened during the poll
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)
        return StreamingResponse(HTTPStatus.OK, partial(self._lines, _Lines(self, poll, followed, first)), MEDIA_TYPE)

    @asynccontextmanager
    async def _lines(self, lines: "_Lines") -> AsyncIterator[AsyncIterator[bytes]]:
        if self.open >= MOST_WATCHES:  # other watches may have been opened since the answer
            lines.end(_FULL)
        self.open += 1
        try:
            yield lines
        finally:
            self.open -= 1


class _Lines:
    """The lines that one watch sends: a chunk for each poll of the state that found changes."""

    def __init__(self, watches: Watches, poll: Poll, request: Request, first: Response) -> None:
        self._watches = watches
        self._poll = poll
        self._request = request
        self._first: Response | None = first
        self._known: dict[_Item, bytes] = {}
        self._spoke = trio.current_time()
        self._took = 0.0
        self._is_over = False

    def end(self, why: str) -> None:
        """End the watch: its only line reports an error."""
        self._first = text_answer(HTTPStatus.SERVICE_UNAVAILABLE, why)

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> bytes:
        """Poll until a change, an error or a bookmark has to be reported, and return the lines that report it."""
        while not self._is_over:
            answer = await self._next()
            began = trio.current_time()
            lines = self._lines_of(answer)
            self._took += trio.current_time() - began
            if not lines and trio.current_time() - self._spoke >= BOOKMARK_S:
                lines = [_line({"type": "BOOKMARK"})]
            if lines:
                self._spoke = trio.current_time()
                return b"".join(lines)
        raise StopAsyncIteration

    async def _next(self) -> Response:
        if self._first is not None:
            answer, self._first = self._first, None
            return answer
        await trio.sleep(max(PAUSE_S, SHARE * self._took * self._watches.open))
        began = trio.current_time()
        answer = await self._poll(self._request)
        self._took = trio.current_time() - began
        return answer

    def _lines_of(self, answer: Response) -> list[bytes]:
        if answer.status != HTTPStatus.OK:
            self._is_over = True
            return [_line({"type": "ERROR", "message": answer.body.decode("utf-8", "replace").strip()})]
        document = cast("JsonValue", msgspec.json.decode(answer.body))
        if self._request.path == LOGS:
            return self._log_lines(document)
        return list(self._changes(document))

    def _changes(self, document: JsonValue) -> Iterator[bytes]:
        found: dict[_Item, bytes] = {}
        for item, value in items_of(document):
            digest = found[item] = blake2b(canonical_json(value), digest_size=16).digest()
            if self._known.get(item) != digest:
                yield _line({"type": "MODIFIED" if item in self._known else "ADDED", **_named(item), "object": value})
        for item in self._known.keys() - found.keys():
            yield _line({"type": "DELETED", **_named(item)})
        self._known = found

    def _log_lines(self, document: JsonValue) -> list[bytes]:
        lines: list[JsonObject] = []
        if dropped := find_int(document, "dropped"):
            lines.append({"type": "DROPPED", "count": dropped})
        found = find_list(document, "lines")
        lines += [{"type": "ADDED", "kind": "lines", "object": line} for line in found]
        if found:
            query = {**self._request.query, AFTER: (str(find_int(found[-1], "number")),)}
            self._request = msgspec.structs.replace(self._request, query=query)
        return [_line(line) for line in lines]


def items_of(document: JsonValue) -> Iterator[tuple[_Item, JsonValue]]:
    """Yield the items of a document, each with its kind and name; the document itself if it has no items; nothing for null."""
    if document is None:
        return
    if not isinstance(document, dict) or not document or not document.keys() <= _MAPS | _LISTS:
        yield _Item("", ""), document
        return
    for kind, items in document.items():
        if isinstance(items, dict):
            for name, value in items.items():
                yield _Item(kind, name), value
        else:
            for value in find_list(document, kind):
                yield _Item(kind, "/".join(find_str(value, key) for key in _KEYS if find_str(value, key))), value


def _named(item: _Item) -> JsonObject:
    return {"kind": item.kind, "name": item.name} if item.kind else {}


def _line(value: JsonObject) -> bytes:
    """Return a line that is safe on a terminal."""
    return f"{json_printable(encode_json(value).decode())}\n".encode()
