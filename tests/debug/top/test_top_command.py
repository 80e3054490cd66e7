"""`wharfinger top`, as a user sees it: a process on a terminal of 80 x 24, connected to a daemon by a real socket."""

import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.golden import GOLDEN, REWRITES, check_golden
from tests.debug.support.samples import HOSTILE, LOG, package
from tests.debug.support.terminal import OnTerminal, on_terminal
from tests.debug.support.top_samples import PACKAGES
from tests.programs import ROOT, attempt, wharfinger
from wharfinger.debug.server.server import open_debug_server
from wharfinger.runtime.inspector import Inspector

pytestmark = pytest.mark.measured

_COLOUR = re.compile(rb"\x1b\[[0-9;]*\b(3[0-9]|4[0-9]|9[0-7])\b[0-9;]*m")
SHORT = "import sys, wharfinger.debug.top.machine as m; m.GIVE_UP_S = 0.0; from wharfinger.__main__ import main; sys.exit(main())"


def inspector() -> CannedInspector:
    return CannedInspector(contents=PACKAGES)


async def watched(
    folder: Path,
    answers: Inspector,
    act: Callable[[OnTerminal], None],
    *command: str,
    environment: dict[str, str] | None = None,
) -> None:
    """Run actions on a live view of a daemon that gives these answers."""
    path = folder / "s"
    words = [*(command or wharfinger("top")), "--socket", str(path)]

    def do() -> None:
        with on_terminal(words, environment=environment) as shown:
            act(shown)

    async with open_debug_server(path, answers):
        await trio.to_thread.run_sync(do)


def has(words: tuple[str, ...], text: str) -> bool:
    return all(word in text for word in words)


def is_golden(part: str, text: str) -> bool:
    return unchanging(text) == part


def unchanging(text: str) -> str:
    """Return the text without the time of day and without ages."""
    text = re.sub(r"\d\d:\d\d:\d\d UTC", "HH:MM:SS UTC", text)
    return re.sub(r"\(\d+d\d\dh\)", "(AGE)", text)


@pytest.mark.slow
async def test_screens_match_the_golden_transcript(tmp_path: Path) -> None:
    script = (
        ("", ("ingress", "q quit")),
        ("\x1b[B\x1b[B", ("> prod.shop",)),
        ("\r", ("What to do:",)),
        ("\x1b[6~", ("Recent decisions:",)),
        ("\x1b", ("NAME+", "> prod.shop")),
        ("/", ("/_",)),
        ("shop", ("/shop_", "(2)")),
        ("\r", ("filter: shop (2)", "q quit")),
        ("\x1b", ("test.a-pack",)),
        ("s", ("STATE+",)),
        ("\t", ("TASK",)),
        ("\t", ("HOOK ",)),
        ("\t", ("DETAIL",)),
        ("?", ("any key",)),
    )
    golden = GOLDEN / "top.txt"
    kept = dict(zip(script, golden.read_text().split("=== ")[1:], strict=False)) if golden.exists() else {}
    parts: list[str] = []

    def act(shown: OnTerminal) -> None:
        for step in script:
            keys, words = step
            if keys:
                shown.press(keys)
            title = f"{keys.encode('unicode_escape').decode() or 'start'}\n"
            if REWRITES:
                shown.wait(partial(has, words))
                text = shown.wait_quiet()
            else:
                # A screen may arrive in pieces, so the test waits for the whole screen.
                text = shown.wait(partial(is_golden, kept[step].removeprefix(title)))
            parts.append(f"=== {title}{unchanging(text)}")
        shown.press("xq")
        assert shown.wait_end() == 0

    await watched(tmp_path, inspector(), act)
    check_golden("top.txt", "".join(parts))


@pytest.mark.slow
async def test_pictures_in_the_documents_are_up_to_date(tmp_path: Path) -> None:
    golden = dict(zip(("top", "top-queues"), (0, 10), strict=True))
    kept = [part.partition("\n")[2] for part in (GOLDEN / "top.txt").read_text().split("=== ")[1:]]
    found: dict[str, str] = {}

    def act(shown: OnTerminal) -> None:
        shown.wait(partial(is_golden, kept[0]))
        found["top"] = shown.picture("wharfinger top: the packages")
        shown.press("s\t")
        shown.wait(partial(is_golden, kept[golden["top-queues"]]))
        found["top-queues"] = shown.picture("wharfinger top: the queues")
        shown.press("q")
        assert shown.wait_end() == 0

    await watched(tmp_path, inspector(), act)
    for name in golden:
        path = ROOT / "docs" / "images" / f"{name}.svg"
        if REWRITES:
            path.parent.mkdir(exist_ok=True)
            path.write_text(found[name])
        assert path.read_text() == found[name], f"WHARFINGER_REWRITE=1 writes {path} anew"


@pytest.mark.slow
async def test_the_view_follows_the_daemon(tmp_path: Path) -> None:
    answers = inspector()

    def act(shown: OnTerminal) -> None:
        shown.wait(lambda text: re.search("prod.shop +Failed", text) is not None)
        answers.contents = (replace(PACKAGES[2], state="Ready", message="well again"),)
        shown.wait(lambda text: "prod.shop  Ready" in text and "1 package" in text)
        shown.resize(50, 10)
        lines = shown.wait(lambda text: "tab next" in text.splitlines()[-1]).splitlines()
        assert len(lines) == 10
        shown.press("q")
        assert shown.wait_end() == 0

    await watched(tmp_path, answers, act)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM", "SIGHUP", "daemon"])
async def test_the_terminal_is_restored(tmp_path: Path, end: str) -> None:
    codes = {"Ctrl-C": 130, "SIGTERM": 143, "SIGHUP": 129, "daemon": 1}
    path = tmp_path / "s"
    words = [sys.executable, "-c", SHORT, "top", "--socket", str(path)]

    def act(stop: Callable[[], None]) -> None:
        with on_terminal(words, environment={"TERM": "xterm-256color"}) as shown:
            before = shown.modes()
            shown.wait(lambda _text: b"ingress" in shown.received)
            assert shown.modes() != before
            match end:
                case "Ctrl-C":
                    shown.press("\x03")
                case "daemon":
                    trio.from_thread.run_sync(stop)
                case _:
                    shown.process.send_signal(getattr(signal, end))
            assert shown.wait_end() == codes[end]
            assert shown.modes() == before
            last = shown.received[-400:]
            assert b"\x1b[?1049l" in last  # the previous screen is restored
            assert b"\x1b[?25h" in last or b"\x1b[?12l" in last  # the cursor is visible again
            assert (b"error: no daemon answers" in last) == (end == "daemon")

    with trio.CancelScope() as serving:
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                async with open_debug_server(path, inspector()):
                    await trio.sleep_forever()

            scope = trio.CancelScope()

            async def served() -> None:
                with scope:
                    await serve()

            nursery.start_soon(served)
            while not path.exists():
                await trio.lowlevel.checkpoint()
            await trio.to_thread.run_sync(act, scope.cancel)
            scope.cancel()
    assert not serving.cancelled_caught


@pytest.mark.slow
async def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    bad = replace(package("prod.bad", message=HOSTILE), state=HOSTILE, drift=(HOSTILE,), warnings=(HOSTILE,))
    log = replace(LOG, package="prod.bad", lines=tuple(replace(line, message=HOSTILE) for line in LOG.lines))

    def act(shown: OnTerminal) -> None:
        shown.wait(lambda text: "prod.bad" in text)
        shown.press("4")
        shown.wait(lambda text: "\\x1b[31mred" in text)
        shown.press("\r")
        shown.wait(lambda text: "Settings:" in text)
        shown.press("G")
        shown.wait(lambda text: "\\x1b[31mred" in text)
        shown.press("q")
        assert shown.wait_end() == 0
        for piece in (b"\x1b[31mred", b"\x1b[0m\r\n\tnext", b"\x9b2J", "\u202e".encode(), b"\x07", b"\x00"):
            assert piece not in shown.received

    await watched(tmp_path, CannedInspector(contents=(bad,), logged=log), act)


@pytest.mark.slow
@pytest.mark.parametrize("no_colour", ["", "1"])
async def test_colours_can_be_switched_off(tmp_path: Path, no_colour: str) -> None:
    def act(shown: OnTerminal) -> None:
        shown.wait(lambda text: "Failed" in text)
        shown.press("q")
        assert shown.wait_end() == 0
        assert bool(_COLOUR.search(bytes(shown.received))) == (not no_colour)

    await watched(tmp_path, inspector(), act, environment={"NO_COLOR": no_colour})


def test_without_a_terminal_another_command_is_suggested() -> None:
    done = attempt(*wharfinger("top"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: `top` needs a terminal; `wharfinger get packages -w`")


@pytest.mark.slow
def test_without_a_daemon_the_terminal_is_not_changed(tmp_path: Path) -> None:
    with on_terminal([*wharfinger("top"), "--socket", str(tmp_path / "none")]) as shown:
        assert shown.wait_end() == 1
        assert shown.received.startswith(b"error: no daemon answers")


@pytest.mark.slow
def test_the_command_imports_few_modules() -> None:
    code = (
        "import sys, wharfinger.debug.top.loop, wharfinger.debug.top.terminal;"
        "sys.exit(bool({'trio', 'httpx', 'kubernetes', 'asyncio'} & set(sys.modules)))"
    )
    began = time.process_time()
    assert attempt(sys.executable, "-c", code).returncode == 0
    assert time.process_time() - began < 5
