"""Real child processes for tests, and views of the system that do not use the tested code."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from wharfinger.process.command import Command, Limits

TAG = "WHARFINGER_TEST_TAG"
PATH = "/usr/local/bin:/usr/bin:/bin"

PATIENT = Limits(wall_s=1000.0, stdout_bytes=1_000_000, term_grace_s=100.0, drain_s=10.0)
"""Limits for a clock that stands still until the test moves it."""
SHORT = Limits(wall_s=60.0, stdout_bytes=1_000_000, term_grace_s=0.05, drain_s=0.05)
"""Limits for the real clock: only the times for which tests have to wait are short."""


def shell(script: str, tag: str = "", *, stdin: bytes = b"", cwd: str = "/") -> Command:
    """Return a command that runs a shell script."""
    return Command(("/bin/sh", "-c", script), Path(cwd), {"PATH": PATH, TAG: tag}, stdin)


def python(script: str, tag: str = "", *, stdin: bytes = b"") -> Command:
    """Return a command that runs a Python script. It does not load site packages, so it starts quickly."""
    return Command((sys.executable, "-I", "-S", "-c", script), Path("/"), {"PATH": PATH, TAG: tag}, stdin)


def alive_with(tag: str) -> list[int]:
    """Return the living processes that have the test's tag in their environment."""
    needle = f"{TAG}={tag}".encode()
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and needle in _content(folder / "environ") and not _is_zombie(folder)
    ]


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    folder = Path("/proc") / str(pid)
    return folder.exists() and not _is_zombie(folder)


def has_children() -> bool:
    """Return whether this process has children, including zombies."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def open_files() -> int:
    """Return the number of open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Lines:
    """A sink that collects output and lets a test wait for it."""

    def __init__(self, also: Callable[[bytes], None] = lambda chunk: None) -> None:
        self.data = b""
        self._also = also
        self._more = trio.Event()

    def __call__(self, chunk: bytes) -> None:
        self.data += chunk
        self._more.set()
        self._more = trio.Event()
        self._also(chunk)

    async def wait_for(self, text: str) -> list[str]:
        """Wait until the output contains ``text``, and return all words so far."""
        while text.encode() not in self.data:
            await self._more.wait()
        return self.data.decode().split()

    async def wait_line(self) -> list[str]:
        """Wait for the end of the first line, and return its words."""
        await self.wait_for("\n")
        return self.data.decode().split("\n")[0].split()


async def wait_dead(pid: int) -> None:
    """Wait until a process has ended. Return immediately if it has already ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _is_zombie(folder: Path) -> bool:
    state = _content(folder / "stat").rpartition(b")")[2].split()
    return not state or state[0] in {b"Z", b"X"}
