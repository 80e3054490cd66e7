"""Completion of command lines, in real shells, and by a call of the program as the shells make it."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from wharfinger.__main__ import main
from wharfinger.command_table import COMMANDS
from wharfinger.debug.server.server import open_debug_server

PATIENCE_S = 120
BASH = """
eval "$(wharfinger completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
COMP_WORDS=($1)
_python_argcomplete wharfinger
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = "wharfinger completion fish | source; complete -C $argv[1]"
ZSH = 'autoload -U compinit; compinit -u -d $HOME/dump; eval "$(wharfinger completion zsh)"; print re""ady'


def environment(home: Path) -> dict[str, str]:
    folder = Path(sys.executable).parent
    return {
        "HOME": str(home),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TERM": "dumb",
        "WHARFINGER_SOCKET": str(home / "debug.sock"),
    }


def completed(shell: str, line: str, home: Path) -> list[str]:
    """Return the words that a shell offers for a command line."""
    words = ("bash", "--norc", "-c", BASH, "-", line) if shell == "bash" else ("fish", "--no-config", "-c", FISH, line)
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=environment(home), cwd=home
    )
    assert done.returncode == 0, done.stderr
    return [each.split("\t")[0].strip() for each in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "fish"])
async def test_shells_complete_commands_options_and_names(shell: str, tmp_path: Path) -> None:
    """The shells offer commands, values, options, and the names of a daemon's packages."""

    async def offered(line: str) -> list[str]:
        return await trio.to_thread.run_sync(completed, shell, line, tmp_path)

    assert await offered("wharfinger g") == ["get", "graph"]
    assert set(await offered("wharfinger get packages --o")) == {"--output"}
    assert await offered("wharfinger graph -o s") == ["svg"]
    assert [each for each in await offered("wharfinger why prod") if each] == []  # No daemon is running.
    async with open_debug_server(tmp_path / "debug.sock", CannedInspector()):
        assert await offered("wharfinger why prod") == ["prod.shop"]
        assert await offered("wharfinger get packages te") == ["test.shop"]
        assert await offered("wharfinger uninstall -n prod s") == ["shop"]
        assert await offered("wharfinger queues prod") == ["prod.shop"]


@pytest.mark.parametrize("command", ["reconcile", "retry", "suspend", "resume", "approve", "rollback"])
async def test_request_commands_complete_package_names(command: str, tmp_path: Path) -> None:
    async with open_debug_server(tmp_path / "debug.sock", CannedInspector()):
        assert await trio.to_thread.run_sync(from_program, f"wharfinger {command} prod", tmp_path) == ["prod.shop"]


async def test_uninstall_completes_applications_of_the_given_namespace(tmp_path: Path) -> None:
    async with open_debug_server(tmp_path / "debug.sock", CannedInspector()):
        for line, names in (("-n prod ", ["shop"]), ("--namespace test s", ["shop"]), ("s", [])):
            found = await trio.to_thread.run_sync(from_program, f"wharfinger uninstall {line}", tmp_path)
            assert found == names, line


def test_completion_offers_every_command(tmp_path: Path) -> None:
    assert {*from_program("wharfinger ", tmp_path)} >= {command.name for command in COMMANDS}


def from_program(line: str, home: Path) -> list[str]:
    """Run the program as the completion scripts of all shells do, and return the words that it offers."""
    program = "import os, sys; os.dup2(1, 8); from wharfinger.__main__ import main; main()"
    protocol = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        (sys.executable, "-c", program),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**environment(home), **protocol},
    )
    return [word for each in done.stdout.split("\n") if (word := each.strip())]


@pytest.mark.slow
def test_zsh_completes_commands(tmp_path: Path) -> None:
    terminal, its_end = pty.openpty()
    zsh = subprocess.Popen(
        ("zsh", "-f", "-i"),
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env=environment(tmp_path),
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(its_end)
    seen = b""

    def read_until(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + PATIENCE_S
        while text not in seen:
            ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0.0))
            assert ready, seen
            seen += os.read(terminal, 4096)
        seen = seen[seen.index(text) + len(text) :]

    try:
        os.write(terminal, ZSH.encode() + b"\n")
        read_until(b"ready")
        os.write(terminal, b"wharfinger get pack\t")
        read_until(b"packages")
        os.write(terminal, b" --out\t")
        read_until(b"--output")
    finally:
        zsh.kill()
        zsh.wait()
        os.close(terminal)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh", "powershell"])
def test_each_shell_has_a_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "wharfinger" in capsys.readouterr().out
