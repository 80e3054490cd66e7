"""Fixtures that the tests of the corpus share."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import pytest
import trio

from tests.corpus.rendered import Charts, keep

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Charts:
    """Return the charts, each rendered by the real helm once in a session."""
    return keep(tmp_path_factory.mktemp("rendered"))


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run functions for worker threads on the event loop, because virtual time would pass while a thread works."""

    async def run_sync(work: Callable[[*Arguments], Result], *arguments: *Arguments, **_options: object) -> Result:
        await trio.lowlevel.checkpoint()
        return work(*arguments)

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)
