"""Real processes for scenario tests: programs and the command line, started and stopped as a user does.

Tests wait for a line of the output or for the end of a program, never for a fixed time.
"""

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
WHARFINGER = (sys.executable, "-m", "wharfinger")
PATIENCE_S = 300


@dataclass(slots=True)
class Program:
    """A running program; ``lines`` has its output so far, both standard output and standard error."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    lines: list[str]
    rest: bytes = b""

    def wait_line(self, text: str) -> str:
        """Wait for a line that contains ``text``, and return it. Raises AssertionError with all lines if the program ends without
        it.
        """
        for line in self.lines:
            if text in line:
                return line
        while True:
            ready, _, _ = select.select([self.output], [], [], PATIENCE_S)
            chunk = os.read(self.output.fileno(), 65536) if ready else b""
            if not chunk:
                said = "\n".join(self.lines)
                raise AssertionError(f"{self.process.args!r} did not say {text!r}:\n{said}")
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            new = [line.decode(errors="replace") for line in lines]
            self.lines += new
            for line in new:
                if text in line:
                    return line

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit code. Meanwhile read its output, so that the pipe is never
        full.
        """
        while chunk := os.read(self.output.fileno(), 65536):
            self.rest += chunk
        self.lines += self.rest.decode(errors="replace").splitlines()
        return self.process.wait(PATIENCE_S)


@contextmanager
def program(*command: str, env: dict[str, str] | None = None) -> Iterator[Program]:
    """Start a program in the checkout. Kill it after the block if it still runs."""
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            yield Program(process, process.stdout, [])
        finally:
            if process.poll() is None:
                process.kill()


def run(*command: str, env: dict[str, str] | None = None) -> str:
    """Run a program to its end, and return its standard output. Raises AssertionError if it fails."""
    done = attempt(*command, env=env)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def attempt(*command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def wharfinger(*arguments: str) -> Sequence[str]:
    """Return the words of a command line for the wharfinger of this checkout."""
    return (*WHARFINGER, *arguments)
