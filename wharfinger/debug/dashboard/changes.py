"""The changes of one page, as server-sent events, for as long as a browser shows it.

There are three kinds of events:

* ``section``: the HTML of a section that changed;
* ``announcement``: a line that a screen reader reads aloud;
* ``problem``: the reason why the daemon does not answer; "" once it answers again.

While nothing changes, the stream has a comment line every QUIET_S seconds, so that the server notices a closed connection.
"""

from collections.abc import AsyncGenerator
from typing import Final

import trio

from wharfinger.debug.dashboard.page_html import Templates
from wharfinger.debug.dashboard.pages import Pages
from wharfinger.debug.errors import DebugError
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.formats.terminal_text import printable

LEAST_PAUSE_S: Final = 1.0
QUIET_S: Final = 15.0
"""The time without an event after which a comment line is sent."""


class Changes:
    """The state of one stream: the content that the browser has received."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._sections: dict[str, str] = {}
        self._announced = ""
        self._problem = ""

    async def next(self, pages: Pages, path: str, argument: str) -> bytes:
        """Return the events that the browser has to get since the last call of this method; no bytes if nothing has changed."""
        try:
            page = await pages.page(path, argument)
        except DebugError as error:
            return self._problem_event(str(error))
        events = [self._problem_event("")]
        for section in page.sections:
            html = self._templates.section(section)
            if self._sections.get(section.key) != html:
                self._sections[section.key] = html
                events.append(_event("section", {"id": section.key, "html": html}))
        if page.announcement != self._announced:
            self._announced = page.announcement
            events.append(_event("announcement", {"text": printable(page.announcement)}))
        return b"".join(events)

    def _problem_event(self, problem: str) -> bytes:
        if problem == self._problem:
            return b""
        self._problem = problem
        return _event("problem", {"text": printable(problem)})


async def events_of(pages: Pages, templates: Templates, path: str, argument: str) -> AsyncGenerator[bytes, None]:
    """Yield the events of a page. There is no pause before the first ones."""
    changes = Changes(templates)
    quiet_since_s = trio.current_time()
    while True:
        events = await changes.next(pages, path, argument)
        if not events and trio.current_time() - quiet_since_s >= QUIET_S:
            events = b": nothing new\n\n"
        if events:
            quiet_since_s = trio.current_time()
            yield events
        await trio.sleep(max(pages.pause_s(path, argument), LEAST_PAUSE_S))


def _event(kind: str, data: JsonObject) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + encode_json(data) + b"\n\n"
