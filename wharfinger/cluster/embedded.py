"""An embedded control plane: ``wharfinger control-plane`` as a child process, for as long as a block runs.

The child keeps its state, its token and its kubeconfig in one folder and uses them again after a restart. It also listens on
its last port again, if that port is still free. So applied objects still exist after a restart, and clients with the old
kubeconfig still work.

The child never outlives its parent for long: it stops when its standard input ends, and the kernel closes this input however the
parent dies. If a child does not stop, the next start of the daemon finds it in the ledger of child processes, and kills it. If
the child dies, the block is cancelled, and the error contains the child's last output.
"""

import os
import socket
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import decode_json, find_str
from wharfinger.kube.kubeconfig import MAX_BYTES, check_replaceable
from wharfinger.process.command import Command
from wharfinger.process.environment import child_environment
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.worker import Worker, open_worker

START_S: Final = 60.0
"""The time, in seconds, in which the child has to read its whole state and begin to accept requests."""
GRACE_S: Final = 12.0
"""The time, in seconds, in which the child has to stop: a little more than the child's own time limit for requests in flight.
"""
KUBECONFIG: Final = "kubeconfig"
LOOPBACK: Final = "127.0.0.1"
_LINE_BYTES: Final = 4096
_LAST_LINES: Final = 5


class EmbeddedError(ClusterError):
    """The embedded control plane did not start, or died; the message contains its last output."""


@asynccontextmanager
async def open_embedded(
    folder: Path, ledger: ProcessLedger | None, *, options: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> AsyncGenerator[Path, None]:
    """Run a control plane with its files in ``folder`` (made with mode 0700 if missing); yield the kubeconfig's path.

    ``options`` are additional options of the command, such as ``--no-tls``, or ``--chaos RULES`` for injected faults.

    Leaving the block stops the child gracefully, and kills it after GRACE_S. Raises EmbeddedError, also in place of an exception
    that the block raises because the child died; ProcessError if the child cannot be started at all; OSError if the folder cannot
    be used.
    """
    command = await trio.to_thread.run_sync(_prepare, folder, options, environ)
    died: list[EmbeddedError] = []
    try:
        async with open_worker(command, ledger=ledger, term_grace_s=GRACE_S) as worker:
            if problem := await _wait_ready(worker):
                died.append(problem)
                raise problem
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, worker, died, nursery.cancel_scope, name="embedded control plane")
                yield folder / KUBECONFIG
                nursery.cancel_scope.cancel(reason="the block is left")
    except ExceptionGroup as group:
        if died:
            raise died[0] from group
        raise
    if died:
        raise died[0]


def _prepare(folder: Path, options: Sequence[str], environ: Mapping[str, str]) -> Command:
    """Create the folder, and return the command to run in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = folder.absolute()
    kubeconfig = folder / KUBECONFIG
    try:
        check_replaceable(kubeconfig)
    except (OSError, ValueError):
        kubeconfig.unlink(missing_ok=True)  # only the daemon writes to this folder, so this is a damaged kubeconfig
    arguments = (
        *("control-plane", "--until-stdin-ends", "--listen", f"{LOOPBACK}:{_last_port(kubeconfig)}"),
        *("--data", str(folder / "data.db"), "--token-file", str(folder / "token"), "--kubeconfig", str(kubeconfig)),
        *options,
    )
    # -P: the files in the folder are data, and must never be imported.
    return Command((sys.executable, "-P", "-m", "wharfinger", *arguments), folder, child_environment(environ))


def _last_port(kubeconfig: Path) -> int:
    """Return the port that the kubeconfig names; 0 if it names no port, or if another process uses the port by now."""
    try:
        document = decode_json(kubeconfig.read_bytes(), max_bytes=MAX_BYTES, what="the kubeconfig")
        port = urlsplit(find_str(document, "clusters", 0, "cluster", "server")).port or 0
        # With SO_REUSEADDR, as in the child: a port with connections in TIME_WAIT counts as free.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, port))
    except (FormatError, OSError, ValueError):
        return 0
    return port


async def _wait_ready(worker: Worker) -> EmbeddedError | None:
    """Wait until the child has printed that it accepts requests, and return None. If the child fails, return the error."""
    said = b""
    with trio.move_on_after(START_S):
        while b"\n" not in said and len(said) < _LINE_BYTES:
            chunk = await worker.receive_some(_LINE_BYTES)
            if not chunk:
                words = _last_words(worker, await worker.wait())
                return EmbeddedError(f"the embedded control plane did not start: {words}")
            said += chunk
        return None
    return EmbeddedError(
        f"the embedded control plane was not ready within {START_S:g} s: {_last_words(worker)}; "
        "check the load of this machine, and the size of the state"
    )


async def _watch(worker: Worker, died: list[EmbeddedError], block: trio.CancelScope) -> None:
    while await worker.receive_some(_LINE_BYTES):
        pass  # the child prints nothing more, and nothing would use such output
    died.append(EmbeddedError(f"the embedded control plane died: {_last_words(worker, await worker.wait())}"))
    block.cancel(reason="the embedded control plane died")


def _last_words(worker: Worker, status: int | None = None) -> str:
    """Return the exit status of the process, and its last lines on standard error."""
    lines = [line.strip() for line in worker.stderr_tail().decode(errors="replace").splitlines() if line.strip()]
    ended = "" if status is None else f"killed by signal {-status}; " if status < 0 else f"exit status {status}; "
    return ended + (" | ".join(lines[-_LAST_LINES:]) or "the process wrote nothing to standard error")
