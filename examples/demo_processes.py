"""The processes of the demo. Each has its own process group, and is always stopped, however the demo ends."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
STOPS_WITHIN_S = 60
PATIENCE_S = 120
"""The limit of each wait; it is long enough for a slow and busy machine."""
LOOK_EVERY_S = 0.1
PR_SET_PDEATHSIG = 1
"""The option of prctl(2) that sets the signal which a process gets when its parent ends."""


class DemoError(Exception):
    """The error of a step that failed."""


class Stopped(KeyboardInterrupt):
    """The exception that ends the demo after SIGINT, SIGTERM or SIGHUP; ``number`` is the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """The handler of signals. The first signal ends the demo early, and each further one kills the processes that still run.

    While the demo ends, a signal raises no exception. So the children are always ended, and the temporary folder, which
    contains the cluster's token, is always removed.
    """

    def __init__(self) -> None:
        self.children = ExitStack()
        self.unwinding = False
        self._running: list[subprocess.Popen[bytes]] = []
        self._starting = False
        self._kept: int | None = None

    def catch(self) -> None:
        """Handle signals until the end of the process. SIGHUP stays ignored under nohup."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._came)

    def start(self, command: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a child process that ends with the demo.

        A signal is handled only after the child is registered, so that the handler never misses the child.
        """
        self._starting = True
        try:
            process = self.children.enter_context(background(command, log, environment))
            self._running.append(process)
        finally:
            self._starting = False
        if self._kept is not None:
            self._came(self._kept, None)
        return process

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if self._starting:
            self._kept = number
        elif self.unwinding:
            for process in self._running:
                kill_group(process)
        else:
            self.unwinding = True
            raise Stopped(number)


@contextmanager
def background(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a child process while the block runs. Then stop it with SIGTERM, and kill its group if it does not end in time.

    The child also gets SIGTERM if this process is killed.
    """
    output: IO[bytes]
    prctl = ctypes.CDLL(None).prctl
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(prctl, PR_SET_PDEATHSIG, int(signal.SIGTERM)),  # noqa: PLW1509 - there is only one thread
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                kill_group(process)
                process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the process group that a child leads, unless the child is known to have ended."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def stop(process: subprocess.Popen[bytes], name: str) -> int:
    """Send SIGTERM to a process, and return its exit code. Raises DemoError if it does not end within STOPS_WITHIN_S."""
    process.terminate()
    try:
        return process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"the {name} did not end within {STOPS_WITHIN_S} s of SIGTERM") from error


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """Return whether a process listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def await_that(holds: Callable[[], bool], *, what: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until ``holds()`` is true, at most PATIENCE_S.

    Raises DemoError, with the end of the log, after this time or if the process ends first.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if process.poll() is not None:
            raise DemoError(f"waiting for {what}: the process exited with {process.returncode}{last_lines(log)}")
        if time.monotonic() > deadline:
            raise DemoError(f"{what}: did not happen within {PATIENCE_S} s{last_lines(log)}")
        time.sleep(LOOK_EVERY_S)


def last_lines(log: Path, lines: int = 25) -> str:
    """Return the end of a log, to be appended to a message, or an empty text if there is no log."""
    if not log.exists():
        return ""
    said = log.read_text(errors="replace").splitlines()[-lines:]
    return f"; the last lines of {log.name}:\n" + "\n".join(f"  {line}" for line in said)
