"""The answers of the daemon, shared by all open pages.

An answer is reused until the daemon may be asked again (:mod:`wharfinger.debug.client.polling`). So if several pages show the
same content, the daemon is asked only as often as for one page.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

import trio

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import Question, Reply, exchange_blocking, run_without_loop
from wharfinger.debug.client.polling import pause_after
from wharfinger.debug.errors import DebugAnswerError, DebugError
from wharfinger.debug.package.description import Description, describe
from wharfinger.runtime.daemon_details import DaemonSnapshot, StatisticsSnapshot
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.package_details import LogSnapshot
from wharfinger.runtime.scheduler_details import NodeSnapshot

MOST_KEPT: Final = 16
"""The number of packages whose answers are kept."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DaemonAnswer:
    """One answer about the whole daemon. ``statistics`` is None while the daemon is starting."""

    daemon: DaemonSnapshot
    packages: tuple[PackageSnapshot, ...]
    nodes: tuple[NodeSnapshot, ...]
    statistics: StatisticsSnapshot | None


@dataclass(frozen=True, slots=True)
class PackageAnswer:
    """One answer about a package, with the scheduler's nodes, which are needed to draw the packages related to it."""

    daemon: DaemonSnapshot
    description: Description
    log: LogSnapshot | None
    nodes: tuple[NodeSnapshot, ...]
    packages: tuple[PackageSnapshot, ...]


@dataclass(slots=True)
class _Kept(Generic[_T]):
    """The last answer of the daemon, or its last failure. It is reused until the time ``until_s``."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    answer: _T | None = None
    failure: DebugError | None = None
    until_s: float = 0.0

    async def get(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Return the kept answer; call ``ask`` for a new one if the kept answer is too old. Raises the DebugError of the last
        attempt if it failed.
        """
        async with self.lock:
            if trio.current_time() >= self.until_s:
                await self._ask(ask)
            if self.answer is None:
                raise self.failure or DebugAnswerError("the daemon has not answered yet")
            return self.answer

    async def _ask(self, ask: Callable[[], Awaitable[_T]]) -> None:
        began_s = trio.current_time()
        try:
            self.answer, self.failure = await ask(), None
        except DebugError as error:
            self.answer, self.failure = None, error
        ended_s = trio.current_time()
        self.until_s = ended_s + pause_after(ended_s - began_s)


class AnswerCache:
    """A cache of answers: one about the daemon, and one for each package that was asked about recently."""

    def __init__(self, client: DebugClient) -> None:
        self._client = client
        self._whole = _Kept[DaemonAnswer]()
        self._ones: dict[str, _Kept[PackageAnswer]] = {}

    async def whole(self) -> DaemonAnswer:
        """Return an answer about the whole daemon. Raises DebugError."""
        return await self._whole.get(self._ask_whole)

    async def one(self, name: str) -> PackageAnswer:
        """Return an answer about a package. Raises DebugError, NoSuchPackageError if there is no such package."""
        whole = await self.whole()
        kept = self._ones.pop(name, None) or _Kept[PackageAnswer]()
        self._ones[name] = kept  # the most recently used one is last
        while len(self._ones) > MOST_KEPT:
            del self._ones[next(iter(self._ones))]
        return await kept.get(lambda: self._ask_one(name, whole))

    def pause_s(self, name: str = "") -> float:
        """Return the time until the daemon may be asked again about a package, or about the whole daemon if ``name`` is ""."""
        kept = self._ones.get(name, self._whole) if name else self._whole
        return max(kept.until_s - trio.current_time(), 0.0)

    async def _ask_whole(self) -> DaemonAnswer:
        client = self._client
        packages = await client.packages()
        return DaemonAnswer(await client.daemon(), packages, await client.scheduler(), await client.statistics())

    async def _ask_one(self, name: str, whole: DaemonAnswer) -> PackageAnswer:
        description = await describe(self._client, name)
        return PackageAnswer(whole.daemon, description, await self._client.logs(name), whole.nodes, whole.packages)


async def exchange_in_thread(path: Path, question: Question) -> Reply:
    """Send a request in a thread, so that other requests are served meanwhile."""
    return await trio.to_thread.run_sync(
        lambda: run_without_loop(exchange_blocking(path, question)), abandon_on_cancel=True
    )
