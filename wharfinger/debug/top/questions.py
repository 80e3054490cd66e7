"""The thread that asks the daemon for the live view, so that keys work while it waits for an answer.

It asks about one subject repeatedly, at the pace of `Pacer`. When the subject changes, it asks immediately. Each answer and each
failure is posted as an event.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import run_without_loop
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.errors import DebugError
from wharfinger.debug.package.description import describe
from wharfinger.debug.top.view import Answered, Failed, Overview, PackagePage, PageAnswered


@dataclass(frozen=True, slots=True)
class Crashed:
    """The thread ended with an error that is a bug."""

    error: Exception


Post: TypeAlias = Callable[[Answered | PageAnswered | Failed | Crashed], None]


async def ask_overview(client: DebugClient) -> Overview:
    """Ask about the whole daemon. Raises DebugError."""
    daemon = await client.daemon()
    packages = await client.packages()
    return Overview(daemon, packages, await client.statistics(), datetime.now(UTC))


async def ask_page(client: DebugClient, name: str) -> PackagePage:
    """Ask about one package. Raises DebugError, but not for a package that is gone."""
    try:
        description = await describe(client, name)
    except NoSuchPackageError:
        description = None
    return PackagePage(name, description, await client.logs(name), datetime.now(UTC))


class Questions:
    """The thread that queries the daemon, and posts the answers. `start` starts it; `stop` does not wait for the query under
    way.
    """

    def __init__(self, client: DebugClient, post: Post) -> None:
        self._client = client
        self._post = post
        self._subject = ""
        self._is_stopped = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Begin to ask about the whole daemon, after a first pause."""
        threading.Thread(target=self._run, name="questions", daemon=True).start()

    def stop(self) -> None:
        """Send no more queries to the daemon. A query under way is not interrupted."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def watch(self, name: str) -> None:
        """Ask from now on about this package, or about the whole daemon if ``name`` is ""."""
        with self._changed:
            self._subject = name
            self._changed.notify()

    def _run(self) -> None:
        asked = ""
        pacer = Pacer(lambda seconds: self._wait(asked, seconds))
        try:
            pacer.next()
            while not self._is_stopped:
                asked = self._subject
                pacer.asked()
                self._post(self._answer(asked))
                pacer.next()
        except Exception as error:  # noqa: BLE001 - a bug is raised again by the thread that shows the view
            self._post(Crashed(error))

    def _wait(self, asked: str, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._subject != asked, seconds)

    def _answer(self, name: str) -> Answered | PageAnswered | Failed:
        try:
            if name:
                return PageAnswered(run_without_loop(ask_page(self._client, name)))
            return Answered(run_without_loop(ask_overview(self._client)))
        except DebugError as error:
            return Failed(str(error), datetime.now(UTC))
