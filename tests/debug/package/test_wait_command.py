"""`wharfinger wait`: its exit codes, and its requests while it waits. Time is virtual."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from tests.debug.support.samples import DAEMON, package
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.package.wait_command import EXIT_LATE, add_wait, wait
from wharfinger.runtime.inspector import PackageSnapshot

LATER = replace(package(), state="Installing", message="applying")


AWAY, STARTING = "away", "starting"
Contents: TypeAlias = tuple[PackageSnapshot, ...] | str


class Waiting:
    """A user who waits for a package of a canned daemon. ``contents`` are the packages at the start and after each pause.

    A pause takes no real time. AWAY in place of packages stands for a daemon that does not answer, and STARTING for a daemon
    that does not know its packages yet.
    """

    def __init__(self, *contents: Contents) -> None:
        self.inspector = CannedInspector()
        self.rest = list(contents)
        self.now_s = 0.0
        self.args = argparse.Namespace()
        self.socket = Path()

    def proceed(self) -> None:
        contents = self.rest.pop(0)
        self.args.socket = self.socket.with_name("none") if contents == AWAY else self.socket
        self.inspector.base = replace(DAEMON, ready=contents != STARTING)
        self.inspector.contents = contents if isinstance(contents, tuple) else ()

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        if self.rest:
            self.proceed()

    def handler(self, args: argparse.Namespace) -> int:
        self.args, self.socket = args, args.socket
        self.proceed()
        return wait(args, Pacer(self.pause, lambda: self.now_s), lambda: self.now_s)


async def run(waiting: Waiting, words: str, folder: Path) -> tuple[int, str, str]:
    return await typed(add_wait, words.split(), waiting.inspector, folder, handler=waiting.handler)


async def test_wait_ends_when_the_package_is_ready(tmp_path: Path) -> None:
    waiting = Waiting((LATER,), (LATER,), (package(),))
    assert await run(waiting, "prod.shop", tmp_path) == (0, "prod.shop: ready\n", "")
    assert waiting.now_s == 2.0


async def test_wait_ends_when_the_package_is_deleted(tmp_path: Path) -> None:
    assert await run(Waiting((package(),), ()), "prod.shop --for deleted", tmp_path) == (0, "prod.shop: deleted\n", "")


async def test_wait_accepts_a_package_that_appears_later(tmp_path: Path) -> None:
    assert (await run(Waiting((), (), (package(),)), "prod.shop", tmp_path))[0] == 0
    code, _, err = await run(Waiting((package(),)), "prod.shoq", tmp_path)
    assert (code, err) == (1, "error: no package named 'prod.shoq'; did you mean prod.shop?\n")


async def test_wait_continues_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    waiting = Waiting((LATER,), AWAY, AWAY, STARTING, (LATER,), (package(),))
    assert await run(waiting, "prod.shop", tmp_path) == (0, "prod.shop: ready\n", "")
    waiting = Waiting((LATER,), AWAY, STARTING, (LATER,), ())
    assert (await run(waiting, "prod.shop --for deleted", tmp_path))[0] == 0
    assert waiting.rest == [], "a starting daemon that does not know the package has not deleted it"


async def test_wait_gives_up_a_daemon_that_does_not_return(tmp_path: Path) -> None:
    waiting = Waiting((LATER,), AWAY)
    code, _, err = await run(waiting, "prod.shop", tmp_path)
    assert (code, waiting.now_s) == (1, 15.0)
    assert err.startswith("error: no daemon answers on ")
    waiting = Waiting((LATER,), AWAY)
    assert (await run(waiting, "prod.shop --timeout 3s", tmp_path))[0] == 1
    assert waiting.now_s == 3.0


async def test_an_unknown_condition_is_an_error_at_once(tmp_path: Path) -> None:
    waiting = Waiting((), (LATER,))
    code, out, err = await run(waiting, "prod.shop --for condition=Loadet", tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("error: prod.shop: there is no condition 'Loadet'; did you mean Loaded? known are ")
    assert waiting.now_s == 1.0, "the condition is checked only when the package is known"


async def test_wait_ends_with_an_error_after_the_timeout(tmp_path: Path) -> None:
    waiting = Waiting((LATER,))
    code, out, err = await run(waiting, "prod.shop --timeout 90s", tmp_path)
    assert (code, out) == (EXIT_LATE, "")
    assert err == (
        "error: prod.shop: the goal 'ready' was not reached in 1m30s (Installing: applying); `wharfinger why prod.shop` shows the"
        " cause\n"
    )
    assert waiting.now_s == 90.0


async def test_a_missing_daemon_and_wrong_arguments_are_errors(tmp_path: Path) -> None:
    def handler(args: argparse.Namespace) -> int:
        args.socket = tmp_path / "none"
        return Waiting(()).handler(args)

    assert (await typed(add_wait, ["a"], CannedInspector(), tmp_path, handler=handler))[0] == 1
    for words in ("a --for x", "a --timeout soon", ""):
        with pytest.raises(SystemExit):
            await typed(add_wait, words.split(), CannedInspector(), tmp_path)
