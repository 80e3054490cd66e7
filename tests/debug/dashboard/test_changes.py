"""The stream of events that updates an open page."""

import json
from contextlib import aclosing

import trio
from trio.testing import MockClock

from tests.debug.dashboard.test_source import Daemon
from wharfinger.debug.dashboard.changes import QUIET_S, Changes, events_of
from wharfinger.debug.dashboard.page_html import Templates
from wharfinger.debug.dashboard.pages import Pages

TEMPLATES = Templates()


def events(data: bytes) -> list[tuple[str, dict[str, str]]]:
    found = []
    for piece in data.decode().split("\n\n")[:-1]:
        kind, text = piece.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(text.removeprefix("data: "))))
    return found


async def test_only_changed_sections_are_sent(autojump_clock: MockClock) -> None:
    daemon = Daemon()
    pages, changes = Pages(daemon.source()), Changes(TEMPLATES)
    first = events(await changes.next(pages, "/queues", ""))
    assert [(kind, data.get("id")) for kind, data in first] == [
        ("section", "tasks"),
        ("section", "limits"),
        ("announcement", None),
    ]
    assert first[0][1]["html"].startswith('<section id="tasks"')
    await trio.sleep(2)
    assert await changes.next(pages, "/queues", "") == b""
    daemon.is_away = True
    await trio.sleep(2)
    assert events(await changes.next(pages, "/queues", "")) == [("problem", {"text": "no daemon"})]
    await trio.sleep(2)
    assert await changes.next(pages, "/queues", "") == b""
    daemon.is_away = False
    await trio.sleep(2)
    assert events(await changes.next(pages, "/queues", "")) == [("problem", {"text": ""})]


async def test_an_idle_stream_sends_comments(autojump_clock: MockClock) -> None:
    async with aclosing(events_of(Pages(Daemon().source()), TEMPLATES, "/queues", "")) as stream:
        assert events(await anext(stream))
        began_s = trio.current_time()
        assert await anext(stream) == b": nothing new\n\n"
        assert QUIET_S <= trio.current_time() - began_s <= QUIET_S + 2
