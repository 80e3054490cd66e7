"""The thread in which the live view requests data from the daemon."""

import queue
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import DAEMON, LOG, PACKAGES, STATISTICS
from wharfinger.debug.client import polling
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import Question, Reply, run_without_loop
from wharfinger.debug.server.server import open_debug_server
from wharfinger.debug.top.questions import Crashed, Questions, ask_overview, ask_page
from wharfinger.debug.top.view import Answered, Failed, PageAnswered

Posted = Answered | PageAnswered | Failed | Crashed
PATIENCE_S = 60


async def test_overview_and_page_are_requested(tmp_path: Path) -> None:
    path = tmp_path / "s"
    client = DebugClient(path)
    async with open_debug_server(path, CannedInspector()):
        overview = await trio.to_thread.run_sync(lambda: run_without_loop(ask_overview(client)))
        page = await trio.to_thread.run_sync(lambda: run_without_loop(ask_page(client, "prod.shop")))
    assert (overview.daemon, overview.packages, overview.statistics) == (
        replace(DAEMON, packages=3),
        PACKAGES,
        STATISTICS,
    )
    assert page.description is not None
    assert (page.description.package, page.log) == (PACKAGES[1], LOG)


async def test_a_deleted_package_gives_an_empty_page(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with open_debug_server(path, CannedInspector()):
        page = await trio.to_thread.run_sync(lambda: run_without_loop(ask_page(DebugClient(path), "prod.gone")))
    assert (page.name, page.description, page.log) == ("prod.gone", None, None)


async def test_a_newly_watched_package_is_requested_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "PAUSE_S", 3600.0)
    monkeypatch.setattr(polling, "MOST_PAUSE_S", 3600.0)
    path, posted = tmp_path / "s", queue.SimpleQueue[Posted]()
    questions = Questions(DebugClient(path), posted.put)
    async with open_debug_server(path, CannedInspector()):
        questions.start()
        try:
            questions.watch("prod.shop")
            first = await trio.to_thread.run_sync(lambda: posted.get(timeout=PATIENCE_S))
            assert isinstance(first, PageAnswered)
            questions.watch("")
            assert isinstance(await trio.to_thread.run_sync(lambda: posted.get(timeout=PATIENCE_S)), Answered)
        finally:
            questions.stop()
    assert posted.empty()


def asked(questions: Questions, posted: "queue.SimpleQueue[Posted]") -> Posted:
    """Start the thread for a package, and return the first message that it posts."""
    questions.start()
    try:
        questions.watch("prod.shop")
        return posted.get(timeout=PATIENCE_S)
    finally:
        questions.stop()


def test_no_daemon_is_reported(tmp_path: Path) -> None:
    posted = queue.SimpleQueue[Posted]()
    first = asked(Questions(DebugClient(tmp_path / "none"), posted.put), posted)
    assert isinstance(first, Failed)
    assert "no such socket" in first.problem


def test_an_unexpected_exception_is_posted() -> None:
    async def broken(_path: Path, _question: Question) -> Reply:
        raise KeyError("bug")

    posted = queue.SimpleQueue[Posted]()
    first = asked(Questions(DebugClient(Path("s"), broken), posted.put), posted)
    assert isinstance(first, Crashed)
    assert isinstance(first.error, KeyError)
