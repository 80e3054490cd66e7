"""Lists and watches over an HTTP session. Their objects are either parsed, or left as text (*unparsed*).

A list is consistent: all its pages are read at one revision. The server may forget this revision before all pages are read. Then
a parsed list, which is returned as a whole, is begun again here. An unparsed list is returned page by page, so its caller has to
begin it again.
"""

import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeVar

import msgspec
import trio

from wharfinger.cluster.api.client import ObjectList, WatchEvent
from wharfinger.cluster.api.errors import GoneError, SilentServerError
from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.cluster.api.http_session import Call, HttpSession, ResponseTooLargeError
from wharfinger.cluster.api.raw_list import read_list_answer
from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.api.watch_stream import LineSplitter, decode_event, decode_raw_event
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject, ShapeError, find_str
from wharfinger.kube.resource import ResourceType

JSON: Final = "application/json"
METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
"""The Accept header that asks for metadata without the other parts. A server that does not support this sends whole objects."""
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"

MAX_LIST_BYTES: Final = 1024 * 1024 * 1024
"""The size limit of one list, over all its pages."""

WAITED_S: Final = 0.0001
"""If the next chunk takes longer than this time, in seconds, the reader is considered to have waited for the server."""
BUSY_S: Final = 0.02
"""A stream is busy if its reader waited for two chunks within this time, in seconds."""
REST_S: Final = 0.005
MUCH_BYTES: Final = 128 * 1024
MAX_KINDS: Final = 10_000
"""The largest number of kinds for which the reader remembers whether their watches send bookmarks."""

_Event = TypeVar("_Event", WatchEvent, RawEvent)


class HttpReader:
    """A reader of lists and watches through a session.

    Its methods raise only ClusterErrors, among them NotServedError if the server does not serve the kind.
    """

    def __init__(self, session: HttpSession) -> None:
        self._session = session
        self._watches = 0
        self._marking: OrderedDict[ResourceType, bool] = OrderedDict()
        """For each kind, True if any watch has received a bookmark; False if no watch has, and one of them was silent for too
        long.
        """

    @property
    def watches(self) -> int:
        """Return the number of open watches."""
        return self._watches

    def silence_limit(self, resource: ResourceType) -> float:
        """Return for how many seconds a watch of this kind may be silent.

        The limit relies on bookmarks, which servers send about once a minute. If watches of this kind send none, they may be
        silent until the server ends them.
        """
        options = self._session.options
        longest = options.watch_s + options.watch_jitter_s + options.watch_grace_s
        return min(options.watch_silence_s, longest) if self._marking.get(resource, True) else longest

    def _mark(self, resource: ResourceType, *, sends: bool) -> None:
        """Record whether watches of this kind receive bookmarks. After the first bookmark, they count as receiving bookmarks
        forever.
        """
        if self._marking.get(resource) is None or sends:
            self._marking[resource] = sends
            if len(self._marking) > MAX_KINDS:
                self._marking.popitem(last=False)

    # -- lists

    async def list(self, resource: ResourceType, namespace: str, selectors: dict[str, str]) -> ObjectList:
        """Return all objects, read in pages.

        If the server has forgotten the list before all pages are read, the list is begun again. The third and last attempt reads
        all objects in one page.
        """
        for page_size in (self._session.options.page_size, self._session.options.page_size, 0):
            listed = await self._list_paged(resource, namespace, selectors, page_size)
            if listed is not None:
                return listed
        raise GoneError(
            410, "Expired", f"list {resource.group_kind}: the server's lists expire before all their pages are read"
        )

    async def _list_paged(
        self, resource: ResourceType, namespace: str, selectors: dict[str, str], page_size: int
    ) -> ObjectList | None:
        """Return the list, or None if the server does not accept a continue token any more."""
        what = _where("list", resource, namespace)
        items: list[JsonObject] = []
        token, size = "", 0
        while True:
            try:
                body = await self._page(resource, namespace, selectors, page_size, token)
            except GoneError:
                if token:
                    return None
                raise
            size = _room(size + len(body), what)
            page = decode_object(body, what)
            items += _items(page, resource, what)
            token = text_of(page, what, "metadata", "continue")
            if not token:
                return ObjectList(tuple(items), text_of(page, what, "metadata", "resourceVersion"))

    @asynccontextmanager
    async def raw_list(
        self, resource: ResourceType, namespace: str, selectors: dict[str, str], *, paged: bool, metadata_only: bool
    ) -> AsyncGenerator[AsyncIterator[RawPage], None]:
        """Yield all objects as text, in pages or in one page.

        If the answer for a page is too large, smaller pages are requested instead. (One page with all objects is not divided.)
        """
        accept = METADATA_LIST if metadata_only else JSON
        async with aclosing(self._raw_pages(resource, namespace, selectors, paged=paged, accept=accept)) as pages:
            yield pages

    async def _raw_pages(
        self, resource: ResourceType, namespace: str, selectors: dict[str, str], *, paged: bool, accept: str
    ) -> AsyncGenerator[RawPage, None]:
        what = _where("list", resource, namespace)
        page_size = self._session.options.page_size if paged else 0
        token, size = "", 0
        while True:
            try:
                body = await self._page(resource, namespace, selectors, page_size, token, accept)
            except ResponseTooLargeError:
                if page_size <= 1:
                    raise
                page_size = max(page_size // 8, 1)
                continue
            size = _room(size + len(body), what)
            answer = read_list_answer(body, resource, what)
            del body  # only one copy of the page is kept while the reader uses it
            yield answer.page
            token = answer.token
            if not token:
                return

    async def _page(
        self,
        resource: ResourceType,
        namespace: str,
        selectors: dict[str, str],
        page_size: int,
        token: str,
        accept: str = JSON,
    ) -> bytes:
        params = ({"limit": str(page_size)} if page_size else {}) | selectors
        params |= {"continue": token} if token else {}
        what = _where("list", resource, namespace)
        return await self._session.request(Call("GET", resource.path(namespace), what, params, accept=accept))

    # -- watches

    @asynccontextmanager
    async def watch(
        self, resource: ResourceType, namespace: str, resource_version: str, selectors: dict[str, str]
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Yield the events, bookmarks included, until the server ends the watch, after about five minutes."""
        what = _where("watch", resource, namespace)
        async with (
            self._stream(resource, namespace, resource_version, selectors) as chunks,
            aclosing(_events(chunks, what, lambda line: self._marked(decode_event(line, what), resource))) as events,
        ):
            yield events

    @asynccontextmanager
    async def raw_watch(
        self,
        resource: ResourceType,
        namespace: str,
        resource_version: str,
        selectors: dict[str, str],
        *,
        metadata_only: bool,
    ) -> AsyncGenerator[AsyncIterator[RawEvent], None]:
        """Yield the events that `watch` would yield, with the objects as text."""
        what = _where("watch", resource, namespace)
        accept = METADATA if metadata_only else JSON
        async with (
            self._stream(resource, namespace, resource_version, selectors, accept) as chunks,
            aclosing(gathered(chunks)) as bunches,
            aclosing(
                _events(bunches, what, lambda line: self._marked(decode_raw_event(line, resource, what), resource))
            ) as events,
        ):
            yield events

    def _marked(self, event: _Event, resource: ResourceType) -> _Event:
        if event.type is WatchType.BOOKMARK:
            self._mark(resource, sends=True)
        return event

    @asynccontextmanager
    async def _stream(
        self,
        resource: ResourceType,
        namespace: str,
        resource_version: str,
        selectors: dict[str, str],
        accept: str = JSON,
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        options = self._session.options
        seconds = options.watch_s + int(options.random() * options.watch_jitter_s)
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            "resourceVersion": resource_version,
            **selectors,
        }
        call = Call("GET", resource.path(namespace), _where("watch", resource, namespace), params, accept=accept)
        self._watches += 1
        try:
            async with self._session.stream(call, read_s=self.silence_limit(resource)) as chunks:
                yield chunks
        except SilentServerError:
            self._mark(resource, sends=False)
            raise
        finally:
            self._watches -= 1


async def gathered(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a stream. While the stream is busy, pause after each chunk for which the reader had to wait.

    Chunks that arrive during a pause are read together afterwards. Otherwise, at thousands of events a second, the reader would
    spend most of its time on waking up for each chunk. If MUCH_BYTES arrive between two waits, there is no pause, because then
    the reader wakes up seldom anyway.
    """
    waited_at, taken = -math.inf, 0
    asked = trio.current_time()
    async for chunk in chunks:
        now = trio.current_time()
        yield chunk
        if now - asked > WAITED_S:
            if now - waited_at < BUSY_S and taken < MUCH_BYTES:
                await trio.sleep(REST_S)
            waited_at, taken = now, 0
        taken += len(chunk)
        asked = trio.current_time()


async def _events(
    chunks: AsyncIterator[bytes], what: str, decode: Callable[[bytes], _Event]
) -> AsyncGenerator[_Event, None]:
    splitter = LineSplitter(what)
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            yield decode(line)
    splitter.finish()


def selectors(labels: str, fields: str) -> dict[str, str]:
    """Return the query parameters with which a list or a watch selects only some objects."""
    given = {"labelSelector": labels, "fieldSelector": fields}
    return {name: selector for name, selector in given.items() if selector}


def decode_object(body: bytes, what: str) -> JsonObject:
    """Parse an answer as a JSON object. Raises MalformedAnswerError."""
    try:
        value: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedAnswerError(f"{what}: the answer is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedAnswerError(f"{what}: the answer is not a JSON object")
    return value


def text_of(document: JsonObject, what: str, *path: str) -> str:
    """Return the text at ``path`` in an answer; "" if it is missing. Raises MalformedAnswerError."""
    try:
        return find_str(document, *path)
    except ShapeError as error:
        raise MalformedAnswerError(f"{what}: {error}") from error


def _room(size: int, what: str) -> int:
    if size > MAX_LIST_BYTES:
        raise MalformedAnswerError(f"{what}: over {MAX_LIST_BYTES} bytes in all")
    return size


def _where(verb: str, resource: ResourceType, namespace: str) -> str:
    return f"{verb} {resource.group_kind}" + (f" in {namespace}" if namespace and resource.namespaced else "")


def _items(page: JsonObject, resource: ResourceType, what: str) -> list[JsonObject]:
    """Return the items of a page, each with apiVersion and kind, which lists of built-in kinds leave out."""
    items = page.get("items")
    result: list[JsonObject] = []
    for item in [] if items is None else items if isinstance(items, list) else [items]:
        if not isinstance(item, dict):
            raise MalformedAnswerError(f"{what}: an item of the list is not an object")
        result.append({"apiVersion": resource.api_version, "kind": resource.kind, **item})
    return result
