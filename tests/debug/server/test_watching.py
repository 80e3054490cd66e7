"""Watched documents, which are sent as JSON lines."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import trio
from trio.testing import MockClock

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import HOSTILE, LOG, package
from wharfinger.debug.server.routes import make_handler
from wharfinger.debug.server.watching import BOOKMARK_S, MOST_WATCHES, PAUSE_S, Watches, items_of
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import is_safe
from wharfinger.httpd.messages import Answer, Handler, Request, Response, StreamingResponse

DUMP = "/api/v1/packages/dump"


async def ask(handler: Handler, path: str = DUMP, **query: str) -> Answer:
    return await handler(
        Request("GET", path, {"watch": ("1",), **{key: (value,) for key, value in query.items()}}, {}, b"")
    )


@asynccontextmanager
async def watch(handler: Handler, path: str = DUMP, **query: str) -> AsyncIterator[AsyncIterator[bytes]]:
    answer = await ask(handler, path, **query)
    assert isinstance(answer, StreamingResponse)
    assert answer.content_type == "application/x-ndjson"
    async with answer.open_chunks() as chunks:
        yield chunks


async def lines(chunks: AsyncIterator[bytes]) -> list[JsonObject]:
    return [json.loads(line) for line in (await anext(chunks)).splitlines()]


async def test_packages_are_reported_when_added_modified_and_deleted(autojump_clock: MockClock) -> None:
    inspector = CannedInspector(contents=(package("prod.a"), package("prod.b"), package("c", kind="Module")))
    async with watch(make_handler(inspector)) as chunks:
        first = await lines(chunks)
        assert [(line["type"], line["kind"], line["name"]) for line in first] == [
            ("ADDED", "apps", "prod.a"),
            ("ADDED", "apps", "prod.b"),
            ("ADDED", "modules", "c"),
        ]
        assert trio.current_time() == 0
        inspector.contents = (package("prod.a", message="changed"), package("c", kind="Module"))
        changed, gone = await lines(chunks)
        assert (changed["type"], changed["name"]) == ("MODIFIED", "prod.a")
        assert gone == {"type": "DELETED", "kind": "apps", "name": "prod.b"}
        assert trio.current_time() == PAUSE_S
        begun = trio.current_time()
        assert await lines(chunks) == [{"type": "BOOKMARK"}]
        assert trio.current_time() - begun == BOOKMARK_S


async def test_a_watched_package_is_a_single_item(autojump_clock: MockClock) -> None:
    inspector = CannedInspector()
    async with watch(make_handler(inspector), "/api/v1/packages/dump", name="prod.shop") as chunks:
        (line,) = await lines(chunks)
        assert (line["type"], "kind" in line) == ("ADDED", False)
        inspector.contents = ()
        assert await lines(chunks) == [{"type": "DELETED"}]


async def test_each_log_line_is_sent_once(autojump_clock: MockClock) -> None:
    inspector = CannedInspector()
    async with watch(make_handler(inspector), "/api/v1/logs", package=LOG.package) as chunks:
        first = await lines(chunks)
        assert len([line for line in first if line["type"] == "ADDED"]) == len(LOG.lines)
        last = replace(LOG.lines[-1], number=LOG.lines[-1].number + 1, message="one more")
        inspector.logged = replace(LOG, lines=(*LOG.lines, last), dropped=3)
        dropped, line = await lines(chunks)
        assert dropped == {"type": "DROPPED", "count": 3}
        assert isinstance(line["object"], dict)
        assert line["object"]["message"] == "one more"


async def test_watches_are_redacted_and_escaped(autojump_clock: MockClock) -> None:
    told = package(message=HOSTILE, settings={"password": "hunter2"})
    async with watch(make_handler(CannedInspector(contents=(told,)))) as chunks:
        text = (await anext(chunks)).decode()
        assert is_safe(text, allow="\n")
        assert "hunter2" not in text


async def test_the_number_of_watches_is_bounded(autojump_clock: MockClock) -> None:
    handler = make_handler(CannedInspector())
    async with AsyncExitStack() as stack:
        for _ in range(MOST_WATCHES):
            await stack.enter_async_context(watch(handler))
        answer = await ask(handler)
        assert isinstance(answer, Response)
        assert (answer.status, answer.body) == (503, b"16 watches are open already; close one, or ask again later\n")
    async with watch(handler) as chunks:
        assert await lines(chunks)


async def test_the_number_of_watches_opened_at_once_is_bounded(autojump_clock: MockClock) -> None:
    """A watch counts as open only after its first answer, but the limit also holds for watches that still wait for their first
    answer.
    """
    watches, seen, all_begun = Watches(), list[bytes](), trio.Event()

    async def look(_request: Request) -> Response:
        await trio.sleep(1)
        return Response(200, b"{}")

    async def follow() -> None:
        answer = await watches.answer(look, Request("GET", "/x", {}, {}, b""))
        if isinstance(answer, Response):
            seen.append(answer.body)
            return
        assert isinstance(answer, StreamingResponse)
        async with answer.open_chunks() as chunks:
            seen.append(await anext(chunks))
            await all_begun.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(MOST_WATCHES * 3):
            nursery.start_soon(follow)
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(2)
        assert len([line for line in seen if b"ADDED" in line]) == watches.open == MOST_WATCHES
        assert len([line for line in seen if b"watches are open already" in line]) == MOST_WATCHES * 2
        all_begun.set()
    assert watches.open == 0


async def test_a_watch_that_is_opened_too_late_ends_with_an_error(autojump_clock: MockClock) -> None:
    handler = make_handler(CannedInspector())
    async with AsyncExitStack() as stack:
        answers = [await ask(handler) for _ in range(MOST_WATCHES + 1)]
        for answer in answers:
            assert isinstance(answer, StreamingResponse)
            chunks = await stack.enter_async_context(answer.open_chunks())
            first = (await lines(chunks))[0]["type"]
            assert first == ("ERROR" if answer is answers[-1] else "ADDED")


async def test_an_error_is_the_last_line_of_a_watch(autojump_clock: MockClock) -> None:
    class Failing(CannedInspector):
        async def why(self, name: str, at: object = None) -> None:
            return None

    inspector = Failing()
    async with watch(make_handler(inspector), "/api/v1/why", package="prod.shop") as chunks:
        assert await lines(chunks) == [{"type": "BOOKMARK"}]  # the document is null, because no package has that name
    answered = [Response(200, b"{}"), Response(503, b"not available: away\n")]

    async def look(_request: Request) -> Response:
        return answered.pop(0)

    answer = await Watches().answer(look, Request("GET", "/x", {}, {}, b""))
    assert isinstance(answer, StreamingResponse)
    async with answer.open_chunks() as chunks:
        assert await lines(chunks) == [{"type": "ADDED", "object": {}}]
        assert await lines(chunks) == [{"type": "ERROR", "message": "not available: away"}]
        assert [chunk async for chunk in chunks] == []


def test_documents_are_divided_into_items() -> None:
    assert list(items_of(None)) == []
    assert [item for item, _ in items_of({"resources": [{"kind": "A", "name": "b"}], "events": []})] == [
        ("resources", "A/b")
    ]
    assert [item for item, _ in items_of({"queues": {"a": {}}, "other": 1})] == [("", "")]
