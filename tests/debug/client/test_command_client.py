"""The client of the commands, which sends requests to the daemon and prints its answers."""

import argparse
import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.programs import ROOT
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import (
    add_name,
    add_socket,
    ask,
    is_unicode,
    print_answer,
    print_failure,
    show,
    terminal_columns,
    write_note,
)
from wharfinger.debug.errors import DebugError, NoDaemonError
from wharfinger.debug.server.server import open_debug_server

PATIENCE_S = 300


class Terminal(io.StringIO):
    """A terminal with a chosen encoding."""

    encoding = "utf-8"

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.encoding = encoding

    def isatty(self) -> bool:
        return True


def typed(*words: str, required: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_name(parser, required=required)
    add_socket(parser)
    return parser.parse_args(words)


async def count(client: DebugClient) -> int:
    return len(await client.packages())


async def names(client: DebugClient) -> str:
    return "".join(f"{each.name} ✓\n" for each in await client.packages())


def test_the_name_of_a_package_is_optional_unless_required() -> None:
    assert typed().name is None
    assert typed("a.b").name == "a.b"
    with redirect_stderr(io.StringIO()), pytest.raises(SystemExit):
        typed(required=True)


async def test_requests_go_to_the_socket_of_the_command_line(tmp_path: Path) -> None:
    async with open_debug_server(tmp_path / "s", CannedInspector()):
        assert await trio.to_thread.run_sync(ask, typed("--socket", str(tmp_path / "s")), count) == 3
    with pytest.raises(NoDaemonError):
        await trio.to_thread.run_sync(ask, typed("--socket", str(tmp_path / "none")), count)


async def test_characters_that_the_terminal_cannot_show_are_escaped(tmp_path: Path) -> None:
    args = typed("--socket", str(tmp_path / "s"))
    async with open_debug_server(tmp_path / "s", CannedInspector()):
        with redirect_stdout(Terminal("ascii")) as out:
            assert await trio.to_thread.run_sync(print_answer, args, names) == 0
    assert out.getvalue().splitlines()[0] == "ingress \\u2713"


async def test_an_empty_answer_and_a_missing_daemon_are_reported(tmp_path: Path) -> None:
    args = typed("--socket", str(tmp_path / "s"))

    def answer() -> int:
        return print_answer(args, names, when_empty="nothing there")

    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        async with open_debug_server(tmp_path / "s", CannedInspector(contents=())):
            assert await trio.to_thread.run_sync(answer) == 0
        assert (out.getvalue(), err.getvalue()) == ("", "nothing there\n")
        assert await trio.to_thread.run_sync(answer) == 1
    assert err.getvalue().startswith("nothing there\nerror: no daemon answers on ")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", ["why prod.shop", "graph", "graph -o svg", "dump -o json"])
async def test_a_full_disk_is_reported_in_one_line(command: str, tmp_path: Path) -> None:
    words = (sys.executable, "-m", "wharfinger", *command.split(), "--socket", str(tmp_path / "s"))

    def answer() -> subprocess.CompletedProcess[str]:
        with Path("/dev/full").open("w") as full:
            return subprocess.run(
                words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S
            )

    async with open_debug_server(tmp_path / "s", CannedInspector()):
        done = await trio.to_thread.run_sync(answer)
    said = "error: the answer cannot be written to stdout: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_closed_pipe_is_raised_as_broken_pipe() -> None:
    """`show` must not catch this error, because `wharfinger.__main__` handles it: the command ends without a message."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out, redirect_stdout(out):
        with pytest.raises(BrokenPipeError):
            show("anything\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)


def test_notes_and_errors_are_written_to_stderr() -> None:
    with redirect_stderr(io.StringIO()) as err:
        write_note("a hint")
        assert print_failure(DebugError("it is\x1b[31m red")) == 1
    assert err.getvalue() == "a hint\nerror: it is\\x1b[31m red\n"


@pytest.mark.parametrize(
    ("encoding", "unicode"), [("utf-8", True), ("UTF8", True), ("ascii", False), ("latin-1", False)]
)
def test_output_follows_the_encoding_of_the_terminal(encoding: str, unicode: bool) -> None:
    with redirect_stdout(Terminal(encoding)) as out:
        assert is_unicode() == unicode
        show("→")
    assert out.getvalue() == ("→" if unicode else "\\u2192")


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "COLUMNS": "77"})
    with redirect_stdout(Terminal("utf-8")):
        assert terminal_columns() == 77
    with redirect_stdout(io.StringIO()):
        assert terminal_columns() is None


def test_a_command_starts_without_an_event_loop(tmp_path: Path) -> None:
    """Commands do not import the modules that this test lists, because importing any of them takes longer than a request to the
    daemon.
    """
    program = (
        "import sys; from wharfinger.__main__ import main; code = main(sys.argv[1:]); "
        "print(code, sorted({'trio', 'httpx', 'yaml', 'kubernetes', 'jsonschema', 'rich', 'asyncio'} & set(sys.modules)))"
    )
    words = (sys.executable, "-c", program, "get", "packages", "--socket", str(tmp_path / "none"))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.stdout == "1 []\n"
    assert done.stderr.startswith("error: no daemon answers on ")
