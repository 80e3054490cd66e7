"""`python -m tests.runtime.support.daemon_forks DESCRIPTOR`: a process that imports the daemon once, and forks for each daemon.

Importing the code takes longer than all other work of a daemon before it is ready. A fork is a real process: it has its own
process ID, can be killed alone, and leaves behind what a killed daemon leaves. The process that forks has one thread, and runs no
code of the daemon itself.

The process that forks gets requests as messages through a socket, and answers each of them. A request either asks for a fork,
whose output goes to the descriptor in the message, or for the exit status of a fork. The exit status is sent when the fork ends.
"""

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.programs import ROOT

MAX_MESSAGE = 128 * 1024
LATE = ("wharfinger.runtime.daemon.commands", "wharfinger.debug.server.activation", "wharfinger.debug.server.server")
"""Modules of the daemon that are imported only after it has read its command line."""


@dataclass(frozen=True, slots=True)
class DaemonForks:
    """The connection of a test to the process that forks. The methods block until the fork is made, or until a
    daemon has ended.
    """

    control: socket.socket

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> int:
        """Fork a daemon whose standard output and standard error are this descriptor, and return its process ID."""
        message = json.dumps({"arguments": list(arguments), "environment": dict(environment)}).encode()
        assert len(message) < MAX_MESSAGE
        socket.send_fds(self.control, [message], [output])
        return self._answer()

    def status(self, pid: int) -> int:
        """Wait for the end of a daemon, and return its exit code, or the negative number of the signal that killed it."""
        self.control.sendall(json.dumps({"wait": pid}).encode())
        return self._answer()

    def _answer(self) -> int:
        answer = self.control.recv(MAX_MESSAGE)
        assert answer, "the process that forks daemons has ended"
        return int(answer)


@contextmanager
def open_daemon_forks() -> Iterator[DaemonForks]:
    """Start the process that forks. At the end of the block, this process and all its forks are dead."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = (sys.executable, "-m", "tests.runtime.support.daemon_forks", str(theirs.fileno()))
    with ours, subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)) as process:
        theirs.close()
        try:
            yield DaemonForks(ours)
        finally:
            ours.close()
            process.wait()


def serve(control: socket.socket) -> None:
    """Fork on request, and return when the socket is closed. At the end, kill all forks."""
    alive = set[int]()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE, 1)
        if not data:
            break
        message = json.loads(data)
        if "wait" in message:
            _, status = os.waitpid(message["wait"], 0)
            alive.discard(message["wait"])
            control.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        (output,) = descriptors
        assert len(list(Path("/proc/self/task").iterdir())) == 1
        pid = os.fork()
        if not pid:
            control.close()
            become(message["arguments"], message["environment"], output)
        os.close(output)
        alive.add(pid)
        control.sendall(str(pid).encode())
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def become(arguments: list[str], environment: dict[str, str], output: int) -> None:
    """Run as a daemon from now on, and exit like one."""
    from tests.runtime.support.crashing import run  # This import is late, because tests import this module too.

    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    sys.exit(run())


def main() -> None:
    """Import the modules that a daemon needs. Then start daemons as forks, on request, until the socket is closed."""
    for name in ("tests.runtime.support.crashing", *LATE):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # forks do not copy the memory pages of frozen objects
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
