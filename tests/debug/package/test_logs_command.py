"""`wharfinger logs`: all retained lines, the last lines, the output of one hook, and lines that are logged later."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.running import typed
from tests.debug.support.samples import LOG, MOMENT
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.package.logs_command import add_logs, logs
from wharfinger.runtime.package_details import LogLineSnapshot, LogSnapshot

FIRST = "2026-05-17T12:30:45.123456Z INFO    installing 1.2.3\n"
SECOND = "2026-05-17T12:30:45.123456Z WARNING a.sh: red \\x1b[31m\n"


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("", FIRST + SECOND),
        ("--tail 1", SECOND),
        ("--tail 0", ""),
        ("--hook hooks/a.sh", SECOND),
    ],
)
async def test_retained_lines_are_printed(words: str, out: str, tmp_path: Path) -> None:
    code, printed, err = await typed(add_logs, ["prod.shop", *words.split()], CannedInspector(), tmp_path)
    assert (code, printed, err) == (0, out, "2 earlier lines are not kept\n")


async def test_unknown_hooks_and_hooks_without_lines_are_reported(tmp_path: Path) -> None:
    quiet = replace(LOG, lines=LOG.lines[:1], dropped=0)
    inspector = CannedInspector()
    inspector.logged = quiet
    known = await typed(add_logs, ["prod.shop", "--hook", "hooks/001-config.sh"], inspector, tmp_path)
    assert known == (0, "", "the daemon has no log lines of the hook hooks/001-config.sh\n")
    unknown = await typed(add_logs, ["prod.shop", "--hook", "b.sh"], inspector, tmp_path)
    assert unknown == (0, "", "the package has no hook 'b.sh'; its hooks are hooks/001-config.sh, hooks/002-later.py\n")


async def test_lines_are_printed_as_json(tmp_path: Path) -> None:
    _, out, _ = await typed(add_logs, ["prod.shop", "-o", "json"], CannedInspector(), tmp_path)
    documents = [json.loads(line) for line in out.splitlines()]
    assert [each["number"] for each in documents] == [7, 9]
    assert documents[1]["hook"] == "hooks/a.sh"
    assert "\x1b" not in out


async def test_an_empty_log_and_an_unknown_package_are_reported(tmp_path: Path) -> None:
    assert await typed(add_logs, ["ingress"], CannedInspector(), tmp_path) == (0, "", "no lines are kept\n")
    code, _, err = await typed(add_logs, ["nope"], CannedInspector(), tmp_path)
    assert (code, err) == (1, "error: no package named 'nope'; `wharfinger get packages` lists them\n")
    with pytest.raises(SystemExit):
        await typed(add_logs, ["a", "--tail", "-1"], CannedInspector(), tmp_path)


async def test_logs_are_followed_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    inspector, asked = CannedInspector(), list[float]()
    later = replace(LOG, lines=(*LOG.lines, LogLineSnapshot(10, MOMENT, "info", "third")), dropped=0)
    again = LogSnapshot("prod.shop", (LogLineSnapshot(1, MOMENT, "info", "anew"),), run="run-2")

    def pause(seconds: float) -> None:
        asked.append(seconds)
        inspector.logged = (later, later, again, again)[len(asked) - 1]
        if len(asked) == 4:
            raise KeyboardInterrupt

    def handler(args: argparse.Namespace) -> int:
        with pytest.raises(KeyboardInterrupt):
            logs(args, Pacer(pause))
        return 0

    _, out, err = await typed(add_logs, ["prod.shop", "-f"], inspector, tmp_path, handler=handler)
    assert [line.split(" ", 2)[2].strip() for line in out.splitlines()] == [
        "installing 1.2.3",
        "a.sh: red \\x1b[31m",
        "third",
        "anew",
    ]
    assert err == "2 earlier lines are not kept\nthe daemon was started again\n"
