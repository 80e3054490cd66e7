"""The dashboard's answers to requests of browsers: pages, their changes, and the files that pages need."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import trio

from wharfinger.debug.dashboard.blocks import Page
from wharfinger.debug.dashboard.changes import events_of
from wharfinger.debug.dashboard.gate import Admitted, Exchanged, Gate, Refused, admit
from wharfinger.debug.dashboard.page_html import Templates
from wharfinger.debug.dashboard.pages import LONGEST, PARAMETERS, Pages
from wharfinger.debug.errors import DebugError
from wharfinger.debug.graph.look import style_lines
from wharfinger.httpd.messages import Answer, CutError, Handler, Request, Response, StreamingResponse

CHANGES: Final = "/changes"
"""The path at which a page requests the changes of its content. It lies below the folder with the secret name (see `gate`)."""
MOST_STREAMS: Final = 16
_FOLDER: Final = Path(__file__).parent / "static"
_FILES: Final = {"style.css": "text/css", "refresh.js": "text/javascript", "icon.svg": "image/svg+xml"}
_HTML: Final = "text/html; charset=utf-8"
HEADERS: Final = (
    (
        "Content-Security-Policy",
        "; ".join(
            (
                "default-src 'none'",
                *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
                "base-uri 'none'",
                "form-action 'self'",
                "frame-ancestors 'none'",
            )
        ),
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
"""The headers of every answer."""


def make_dashboard_handler(pages: Pages, gate: Gate, clock: Callable[[], float] = trio.current_time) -> Handler:
    """Make the handler of the dashboard's server; ``clock`` counts seconds for the expiry of the token."""
    site = _Site(pages, gate, clock)
    return site.answer


class _Site:
    """The state of the site: its gate, and the number of open streams."""

    def __init__(self, pages: Pages, gate: Gate, clock: Callable[[], float]) -> None:
        self._pages = pages
        self._gate = gate
        self._clock = clock
        self._templates = Templates()
        self._files = _read_files()
        self._streams = 0

    async def answer(self, request: Request) -> Answer:
        """Answer one request."""
        self._gate, verdict = admit(self._gate, request, self._clock())
        match verdict:
            case Refused(status, why):
                more = (("Allow", "GET, HEAD"),) if status == 405 else ()
                return _html(status, self._templates.refused(why), more)
            case Exchanged(cookie):
                return _html(303, "", (("Location", self._gate.folder), ("Set-Cookie", cookie)))
            case Admitted(path):
                return await self._admitted(path, request)

    async def _admitted(self, path: str, request: Request) -> Answer:
        if path in self._files:
            kind, body = self._files[path]
            return Response(200, body, kind, HEADERS)
        if path == CHANGES:
            return self._changes(request)
        return await self._page(path, request)

    async def _page(self, path: str, request: Request) -> Response:
        if path not in PARAMETERS:
            return _html(404, self._templates.refused("There is no such page."))
        argument = _argument(path, request)
        if argument is None:
            return _html(400, self._templates.refused("The address of this page has a mistake in it."))
        problem = ""
        try:
            page = await self._pages.page(path, argument)
        except DebugError as error:
            problem = str(error)
            page = Page(argument or "No answer", path, ())
        query = {"page": path, **dict.fromkeys(PARAMETERS[path], argument)}
        html = self._templates.page(page, path, f"{CHANGES.removeprefix('/')}?{urlencode(query)}", problem)
        return _html(503 if problem else 200, html)

    def _changes(self, request: Request) -> Answer:
        path = request.arg("page")
        argument = _argument(path, request, "page") if path in PARAMETERS else None
        if argument is None:
            return _html(400, self._templates.refused("There is no such page."))
        if self._streams >= MOST_STREAMS:
            return _html(503, self._templates.refused(f"{MOST_STREAMS} pages are open already; close some of them."))

        @asynccontextmanager
        async def open_chunks() -> AsyncIterator[AsyncIterator[bytes]]:
            if self._streams >= MOST_STREAMS:  # others were opened since the answer
                raise CutError(f"{MOST_STREAMS} pages are open already")
            self._streams += 1
            try:
                async with aclosing(events_of(self._pages, self._templates, path, argument)) as events:
                    yield events
            finally:
                self._streams -= 1

        return StreamingResponse(200, open_chunks, "text/event-stream", HEADERS)


def _argument(path: str, request: Request, *others: str) -> str | None:
    """Return the value of the query parameter of a page, "" if it is missing; None if the query is wrong. ``others`` are further
    parameters that are allowed.
    """
    known = PARAMETERS[path]
    if request.query.keys() - known - set(others):
        return None
    value = next((request.arg(name) for name in known), "")
    return value if len(value) <= LONGEST else None


def _read_files() -> Mapping[str, tuple[str, bytes]]:
    files = {f"/static/{name}": (kind, (_FOLDER / name).read_bytes()) for name, kind in _FILES.items()}
    graph = "".join(f"{line}\n" for line in style_lines(".graph"))
    return {**files, "/static/graph.css": ("text/css", graph.encode())}


def _html(status: int, html: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, html.encode("utf-8", "replace"), _HTML, (*HEADERS, *headers))
