"""The client of the debug socket, which is an Inspector (`wharfinger.runtime.inspector`): its answers and its errors."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.inspector_contract import check_inspector
from tests.debug.support.samples import (
    BUSY,
    EXPLANATIONS,
    HISTORY,
    HOOK_METRICS,
    HOSTILE,
    MANIFEST,
    MEMORY,
    METRICS,
    NODES,
    PACKAGES,
    POOLS,
    STATISTICS,
    package,
)
from tests.debug.support.socket_client import socket_client
from wharfinger.debug.addresses import ELSEWHERE, MAX_SETTINGS
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.errors import DebugAnswerError
from wharfinger.debug.server.server import open_debug_server
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.terminal_text import is_safe
from wharfinger.httpd.messages import Handler, Request, Response, StreamingResponse
from wharfinger.httpd.server import HttpLimits, open_server
from wharfinger.runtime.inspector import PackageSnapshot, RenderSnapshot, ValidSettings


@asynccontextmanager
async def client_of(inspector: CannedInspector, path: Path) -> AsyncIterator[DebugClient]:
    async with open_debug_server(path, inspector):
        yield socket_client(path)


async def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """If an argument of the command is not UTF-8, Python turns each invalid byte into a lone surrogate."""
    async with client_of(CannedInspector(), tmp_path / "debug.sock") as client:
        for ask in (client.package, client.why, client.history, client.render, client.hook_snapshots):
            with pytest.raises(DebugAnswerError, match="is not UTF-8"):
                await ask("prod.\udcff")


@pytest.mark.parametrize("contents", [(*PACKAGES, BUSY), ()])
async def test_the_inspector_contract_holds_over_the_socket(
    contents: tuple[PackageSnapshot, ...], tmp_path: Path
) -> None:
    async with client_of(CannedInspector(contents=contents), tmp_path / "debug.sock") as client:
        await check_inspector(client)


async def test_the_client_returns_the_same_snapshots_as_the_daemon(tmp_path: Path) -> None:
    inspector = CannedInspector()
    async with client_of(inspector, tmp_path / "debug.sock") as client:
        assert await client.daemon() == await inspector.daemon()
        assert await client.packages() == PACKAGES
        assert await client.queues() == await inspector.queues()
        assert await client.pools() == POOLS
        for expected in PACKAGES:
            assert await client.package(expected.name) == expected
        assert await client.package("no.such") is None
        assert await client.scheduler() == NODES
        assert await client.statistics() == STATISTICS
        assert await client.memory() == MEMORY
        assert (await client.metrics(), await client.hook_metrics()) == (METRICS + ELSEWHERE, HOOK_METRICS)
        inspector.counted = None
        assert await client.statistics() is None
        inspector.contents = (BUSY,)
        assert await client.package(BUSY.name) == BUSY


async def test_rendered_manifests_are_returned_with_secrets_redacted(tmp_path: Path) -> None:
    async with client_of(CannedInspector(), tmp_path / "debug.sock") as client:
        redacted = MANIFEST.replace("aHVudGVyMg==", "'***'")
        assert await client.render("prod.shop") == RenderSnapshot(redacted, problem="", has_chart=True)
        shown = await client.render("prod.shop", show_secrets=True)
        assert shown == RenderSnapshot(MANIFEST, problem="", has_chart=True)
        assert await client.render("ingress") == RenderSnapshot("", problem="", has_chart=False)
        failed = await client.render("test.shop")
        assert failed == RenderSnapshot("", problem="template: no such function", has_chart=True)
        assert await client.render("no.such") is None


async def test_the_history_of_a_package_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    client = socket_client(path)
    async with open_debug_server(path, CannedInspector()):
        assert await client.history("no.such") is None
        found = await client.history("prod.shop")
        assert found is not None
        assert found == HISTORY
        assert await client.why("prod.shop", HISTORY.events[0].time - timedelta(days=1)) is None
        assert await client.why("prod.shop", HISTORY.events[0].time) == EXPLANATIONS["prod.shop"]


async def test_the_explanation_of_a_package_is_returned(tmp_path: Path) -> None:
    async with client_of(CannedInspector(), tmp_path / "debug.sock") as client:
        for name, expected in EXPLANATIONS.items():
            assert await client.why(name) == expected
        assert await client.why("no.such") is None


async def test_settings_are_validated_by_the_daemon(tmp_path: Path) -> None:
    inspector = CannedInspector()
    settings: JsonObject = {"a": [1, None, {"ü": HOSTILE.replace("\ud800", "")}]}
    async with client_of(inspector, tmp_path / "debug.sock") as client:
        for name in ("prod.shop", "test.shop", "ingress"):
            expected = inspector.answers.get(name, ValidSettings("1.2.3"))
            assert await client.validate(name, settings, 3) == expected
            assert inspector.asked.pop() == (name, settings, 3)
        assert await client.validate("no.such", {}) is None


async def test_settings_that_cannot_be_sent_are_refused(tmp_path: Path) -> None:
    inspector = CannedInspector()
    async with client_of(inspector, tmp_path / "debug.sock") as client:
        with pytest.raises(DebugAnswerError, match=f"more than {MAX_SETTINGS} bytes"):
            await client.validate("prod.shop", {"a": "x" * MAX_SETTINGS})
        with pytest.raises(DebugAnswerError, match="no JSON form"):
            await client.validate("prod.shop", {"a": "\ud800"})
        big: JsonObject = {"a": "x" * (MAX_SETTINGS - 100)}
        assert await client.validate("prod.shop", big) is not None
    assert inspector.asked == [("prod.shop", big, 0)]


async def test_hostile_names_and_values_pass_unchanged(tmp_path: Path) -> None:
    text = HOSTILE.replace("\ud800", "")
    deep: JsonValue = "bottom"
    for _ in range(195):
        deep = [deep]
    odd = package("prod.a&b=c %20#/?\x1b", message=text, settings={"a": text, "deep": deep, "large": "x" * 1_000_000})
    async with client_of(CannedInspector(contents=(odd,)), tmp_path / "debug.sock") as client:
        assert await client.package(odd.name) == odd
        assert await client.packages() == (odd,)


# Malformed answers


@asynccontextmanager
async def stranger(handler: Handler, path: Path) -> AsyncIterator[DebugClient]:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listening.bind(str(path))
    listening.listen()
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    async with open_server([listener], handler, HttpLimits()):
        yield socket_client(path)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (Response(500, b"internal error\n"), "500 internal error"),
        (Response(404, HOSTILE.encode("utf-8", "replace")), r"404 \\x1b\[31mred"),
        (Response(400, b"x" * 10_000), r"400 x+…"),
        (Response(200, b"\xff"), "does not understand"),
        (Response(200, b"{"), "does not understand"),
        (Response(200, b""), "does not understand"),
        (Response(200, b"[" * 100_000), "does not understand"),
        (Response(200, b'{"name": 5, "version": 5}'), "(?i)expected|required"),
        (Response(200, b"[5]"), "."),
        (Response(204), "204"),
    ],
)
async def test_malformed_http_answers_are_errors(response: Response, why: str, tmp_path: Path) -> None:
    async def handler(_request: Request) -> Response:
        return response

    async with stranger(handler, tmp_path / "debug.sock") as client:
        for question in (client.daemon, partial(client.package, "a")):
            with pytest.raises(DebugAnswerError, match=why) as raised:
                await question()
            assert is_safe(str(raised.value))
            assert "wharfinger version" in str(raised.value)
            assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (Response(404, b"no such path: /api/v1/packages/render/a; /endpoints lists all paths\n"), "404 no such path"),
        (Response(400, b"unknown query parameter: show-secrets; known here: none\n"), "400 unknown query"),
        (Response(500, b"internal error\n"), "500 internal error"),
        (Response(204), "204"),
    ],
)
async def test_a_failed_render_request_is_an_error(response: Response, why: str, tmp_path: Path) -> None:
    async def handler(_request: Request) -> Response:
        return response

    async with stranger(handler, tmp_path / "debug.sock") as client:
        with pytest.raises(DebugAnswerError, match=why):
            await client.render("a", show_secrets=True)


@pytest.mark.parametrize(
    "question", ["daemon", "packages", "pools", "queues", "scheduler", "statistics", "memory", "profile", "why"]
)
async def test_answers_of_an_unexpected_shape_are_errors(question: str, tmp_path: Path) -> None:
    async def handler(_request: Request) -> Response:
        return Response(200, b'{"name": 5, "apps": 5, "queues": 5, "pools": 5, "nodes": 5, "version": 5}')

    async with stranger(handler, tmp_path / "debug.sock") as client:
        questions: dict[str, Callable[[], Awaitable[object]]] = {
            "daemon": client.daemon,
            "packages": client.packages,
            "pools": client.pools,
            "queues": client.queues,
            "scheduler": client.scheduler,
            "statistics": client.statistics,
            "memory": client.memory,
            "profile": partial(client.profile, 1),
            "why": partial(client.why, "a"),
        }
        with pytest.raises(DebugAnswerError, match=r"(?i)expected|required"):
            await questions[question]()


async def test_an_answer_without_a_length_is_not_read(tmp_path: Path) -> None:
    @asynccontextmanager
    async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
        send, receive = trio.open_memory_channel[bytes](0)
        with send, receive:
            yield receive

    async def handler(_request: Request) -> StreamingResponse:
        return StreamingResponse(200, open_chunks)

    async with stranger(handler, tmp_path / "debug.sock") as client:
        with pytest.raises(DebugAnswerError, match="has no length, or is larger than"):
            await client.daemon()
