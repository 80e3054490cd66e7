"""The routes of the dashboard: their answers, and the requests that they refuse."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.debug.dashboard.test_source import Daemon
from tests.debug.support.dashboard_samples import inspector, opened, request
from tests.debug.support.samples import HOSTILE, package
from wharfinger.debug.dashboard.gate import Gate
from wharfinger.debug.dashboard.pages import LONGEST, Pages
from wharfinger.debug.dashboard.routes import HEADERS, MOST_STREAMS, make_dashboard_handler
from wharfinger.formats.terminal_text import is_safe
from wharfinger.httpd.messages import CutError, Handler, Response, StreamingResponse

GATE = Gate("tok", "ses", "c", 10.0, "/f/")


def site(daemon: Daemon | None = None) -> Handler:
    return make_dashboard_handler(Pages((daemon or Daemon()).source()), GATE, lambda: 0.0)


async def answered(target: str, daemon: Daemon | None = None) -> Response:
    answer = await site(daemon)(request(f"/f{target}", cookie="c=ses"))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize(
    ("target", "status", "kind"),
    [
        ("/", 200, "text/html; charset=utf-8"),
        ("/?find=shop", 200, "text/html; charset=utf-8"),
        ("/queues", 200, "text/html; charset=utf-8"),
        ("/package?name=prod.shop", 200, "text/html; charset=utf-8"),
        ("/package?name=nope", 200, "text/html; charset=utf-8"),
        ("/static/style.css", 200, "text/css"),
        ("/static/graph.css", 200, "text/css"),
        ("/static/refresh.js", 200, "text/javascript"),
        ("/static/icon.svg", 200, "image/svg+xml"),
        ("/static/../gate.py", 404, "text/html; charset=utf-8"),
        ("/nope", 404, "text/html; charset=utf-8"),
        ("/?finds=shop", 400, "text/html; charset=utf-8"),
        (f"/?find={'x' * (LONGEST + 1)}", 400, "text/html; charset=utf-8"),
        ("/changes?page=/nope", 400, "text/html; charset=utf-8"),
        ("/changes?page=/&name=x", 400, "text/html; charset=utf-8"),
    ],
)
async def test_every_address_has_its_status_and_content_type(target: str, status: int, kind: str) -> None:
    answer = await answered(target)
    assert (answer.status, answer.content_type) == (status, kind)
    assert set(HEADERS) <= set(answer.headers)


async def test_every_address_is_refused_without_the_cookie() -> None:
    for target in ("/", "/queues", "/package?name=prod.shop", "/static/refresh.js", "/changes?page=/", "/nope"):
        answer = await site()(request(f"/f{target}"))
        assert isinstance(answer, Response)
        assert answer.status == 403
        assert set(HEADERS) <= set(answer.headers)
        assert b"prod.shop" not in answer.body


async def test_answers_allow_no_access_by_other_sites() -> None:
    answer = await site()(request("/f/", cookie="c=ses", origin="https://evil.example"))
    assert isinstance(answer, Response)
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]
    refused = await site()(request("/f/", "POST", cookie="c=ses"))
    assert isinstance(refused, Response)
    assert ("Allow", "GET, HEAD") in refused.headers


async def test_the_style_of_drawings_is_limited_to_them() -> None:
    lines = (await answered("/static/graph.css")).body.decode().splitlines()
    assert all(line.startswith((".graph ", "@media", "}")) for line in lines)


async def test_a_missing_daemon_is_shown_on_the_page() -> None:
    daemon = Daemon()
    daemon.is_away = True
    answer = await answered("/", daemon)
    assert answer.status == 503
    assert b'<div id="problem" role="alert"><p>no daemon</p>' in answer.body


async def test_streams_are_limited() -> None:
    handle = site()
    streams = [await handle(request("/f/changes?page=/queues", cookie="c=ses")) for _ in range(MOST_STREAMS)]
    assert all(isinstance(stream, StreamingResponse) for stream in streams)
    [first, *others] = [stream.open_chunks() for stream in streams if isinstance(stream, StreamingResponse)]
    async with first as chunks:
        assert (await anext(chunks)).startswith(b"event: section")
        for other in others:
            await other.__aenter__()
        refused = await handle(request("/f/changes?page=/queues", cookie="c=ses"))
        assert isinstance(refused, Response)
        assert refused.status == 503
        for other in others:
            await other.__aexit__(None, None, None)
    assert isinstance(await handle(request("/f/changes?page=/queues", cookie="c=ses")), StreamingResponse)


async def test_streams_that_are_requested_at_once_are_limited_when_they_open() -> None:
    """If several streams are requested at once, all requests are answered before any stream is open. So the limit is checked
    again when a stream opens.
    """
    handle = site()
    answers = [await handle(request("/f/changes?page=/queues", cookie="c=ses")) for _ in range(MOST_STREAMS + 1)]
    streams = [answer.open_chunks() for answer in answers if isinstance(answer, StreamingResponse)]
    assert len(streams) == MOST_STREAMS + 1
    async with AsyncExitStack() as stack:
        for stream in streams[:-1]:
            await stack.enter_async_context(stream)
        with pytest.raises(CutError, match="pages are open"):
            await stack.enter_async_context(streams[-1])
        refused = await handle(request("/f/changes?page=/queues", cookie="c=ses"))
        assert isinstance(refused, Response)
        assert refused.status == 503
    assert isinstance(await handle(request("/f/changes?page=/queues", cookie="c=ses")), StreamingResponse)


async def test_texts_of_packages_are_escaped_on_the_page(tmp_path: Path) -> None:
    bad = replace(
        package("prod.bad", message=f"<img src=x onerror=alert(1)>{HOSTILE}"),
        state=HOSTILE,
        drift=(HOSTILE,),
        urls=(HOSTILE,),
    )
    answers = replace(inspector(), contents=(bad,))
    async with opened(tmp_path, answers) as (address, client):
        pages = [await client.get(address), await client.get("package?name=prod.bad"), await client.get("queues")]
        for page in pages:
            assert page.status_code == 200
            assert "<img" not in page.text
            assert is_safe(page.text, allow="\n")
