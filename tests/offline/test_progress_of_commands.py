"""The progress of real commands on a real terminal, and Ctrl-C."""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.offline.support import CHART, write_tree
from tests.programs import ROOT, WHARFINGER

pytestmark = pytest.mark.slow

HELM = """\
#!/bin/sh
case "$1" in version) echo v4.3.1; exit;; esac
echo $$ >"{folder}/pid"
read -r _ <"{folder}/gate"
echo 'apiVersion: v1'; echo 'kind: ConfigMap'; echo 'metadata: {{name: a}}'
"""


@contextmanager
def on_terminal(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """Run ``wharfinger build`` on a chart, with stderr on a terminal of 40 columns. Helm is a script that waits for a line in
    the pipe ``gate``. Yield the process, our end of the terminal, and the descriptor of the pipe.
    """
    write_tree(folder / "web\x1b[31m", CHART)
    helm = folder / "helm"
    helm.write_text(HELM.format(folder=folder))
    helm.chmod(0o755)
    os.mkfifo(folder / "gate")
    gate = os.open(folder / "gate", os.O_RDWR | os.O_NONBLOCK)
    ours, theirs = pty.openpty()
    os.set_inheritable(theirs, True)
    subprocess.run(["stty", "cols", "40"], stdin=theirs, check=True)
    # ``theirs`` becomes the controlling terminal of the command, so that Ctrl-C becomes a signal.
    command = [
        "setsid",
        "--ctty",
        *WHARFINGER,
        "build",
        str(folder / "web\x1b[31m"),
        "--helm",
        str(helm),
        "--engine",
        "none",
        "--offline",
    ]
    process = subprocess.Popen(
        [*command, "--cache-dir", str(folder / "cache"), *options],
        cwd=ROOT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "NO_COLOR": "1"},
    )
    os.close(theirs)
    try:
        yield process, ours, gate
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(gate)


def read_until(terminal: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # The other side has closed the terminal.
            break
        seen += chunk
    assert text in seen, seen
    return seen


def rest(terminal: int) -> bytes:
    seen = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            return seen
        if not chunk:
            return seen
        seen += chunk


def test_progress_is_shown_within_the_width_and_removed(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as (process, terminal, gate):
        seen = read_until(terminal, b"rendering")
        os.write(gate, b"go\n")
        seen += rest(terminal)
        output, _ = process.communicate()
    assert process.returncode == 0
    assert b"kind: ConfigMap" in output
    assert b"\x1b" not in seen
    assert b"\n" not in seen
    *lines, last, end = seen.decode().split("\r")
    assert all(len(line) < 40 for line in lines)
    assert (last.strip(), end) == ("", "")


def test_progress_can_be_switched_off(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "--no-progress") as (process, terminal, gate):
        os.write(gate, b"go\n")
        assert rest(terminal) == b""
        process.communicate()
    assert process.returncode == 0


def test_ctrl_c_ends_the_command_and_its_children(tmp_path: Path) -> None:
    with on_terminal(tmp_path) as (process, terminal, _):
        seen = read_until(terminal, b"rendering")
        child = int((tmp_path / "pid").read_text())
        os.write(terminal, b"\x03")
        seen += rest(terminal)
        output, _ = process.communicate()
    assert process.returncode == 130
    assert output == b""
    assert b"Traceback" not in seen
    assert b"Error" not in seen
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
