"""Helpers for tests of restarts: packages whose hooks can be held, processes that are watched to their end,
and a slow registry.
"""

import http.client
import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.programs import PATIENCE_S, Program, program, run, wharfinger
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.packages.registry.address import RegistryAddress

CHUNK = 64 * 1024


def kill(running: Program) -> None:
    """Kill a process with `kill -9`, and wait for its end."""
    os.kill(running.process.pid, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL


@contextmanager
def embedded_daemon(folder: Path, *more: str) -> Iterator[Program]:
    """Run a daemon with its own control plane. All its files are below ``folder``."""
    with program(*wharfinger("run", "--embedded", "--state-dir", str(folder / "state"), *more)) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Watched:
    """A process with a pidfd. Unlike a process ID, a pidfd never refers to another process."""

    pid: int
    descriptor: int

    def ended(self) -> bool:
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def wait_ended(self) -> None:
        ready, _, _ = select.select([self.descriptor], [], [], PATIENCE_S)
        assert ready, f"process {self.pid} still runs"


@contextmanager
def watched(pid: int) -> Iterator[Watched]:
    """Watch a process that is alive now."""
    descriptor = os.pidfd_open(pid)
    try:
        one = Watched(pid, descriptor)
        assert not one.ended()
        yield one
    finally:
        os.close(descriptor)


def children(pid: int, word: str) -> list[int]:
    """Return the children of a process that have this word in their command line."""
    below = (child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split())
    return [int(child) for child in below if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes()]


def held_hook(folder: Path, config: str, word: str) -> str:
    """Return a hook that notes a word, and ends immediately if a file ``go`` exists. Otherwise the hook is held.

    A held hook writes its process ID, and that of its child process, into the FIFO that `held` reads.
    """
    return bash(
        config,
        f'echo {word} >>"{folder}/notes"\n'
        f'[ -e "{folder}/go" ] && exit 0\n'
        f'sleep 600 &\necho $$ $! >"{folder}/held"\nwait',
    )


def held(folder: Path) -> list[int]:
    """Wait until a hook made by `held_hook` is held, and return the IDs of its processes. The FIFO must exist before the hook
    runs.
    """
    said = b""
    descriptor = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], PATIENCE_S)
            assert ready, "no hook is held"
            said += os.read(descriptor, 100)
    finally:
        os.close(descriptor)
    return [int(number) for number in said.split()]


@dataclass
class Stall:
    """The state of a `slow_registry`. ``reached`` is set when half of a blob was sent. The rest follows once ``go_on`` is set."""

    address: RegistryAddress
    reached: threading.Event = field(default_factory=threading.Event)
    blobs: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released once for each blob when its first half was sent."""
    go_on: threading.Event = field(default_factory=threading.Event)


@contextmanager
def slow_registry(real: RegistryAddress, min_bytes: int) -> Iterator[Stall]:
    """Serve a registry that forwards all requests to a real one.

    Until `Stall.go_on` is set, it sends the second half of each blob slowly, if the blob has at least ``min_bytes``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            upstream = http.client.HTTPConnection(real.host, real.port, timeout=PATIENCE_S)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            upstream.request(self.command, self.path, headers=headers)
            answer = upstream.getresponse()
            body = answer.read()
            upstream.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            half = len(body) // 2 if "/blobs/" in self.path and len(body) >= min_bytes else len(body)
            try:
                self.wfile.write(body[:half])
                if half < len(body):
                    stall.reached.set()
                    stall.blobs.release()
                    self.drip(body[half:])
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def drip(self, rest: bytes) -> None:
            """Send ten bytes every tenth of a second, so that the connection is never idle. Once `Stall.go_on` is set, send all
            remaining bytes at once.
            """
            while not stall.go_on.wait(0.1) and len(rest) > 10:
                self.wfile.write(rest[:10])
                rest = rest[10:]
            self.wfile.write(rest)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stall = Stall(RegistryAddress("127.0.0.1", server.server_address[1]))
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield stall
        finally:
            stall.go_on.set()
            server.shutdown()
            serving.join()


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A kubectl that uses a certain kubeconfig."""

    kubeconfig: Path

    def __call__(self, *arguments: str) -> str:
        return run("kubectl", *arguments, env={"KUBECONFIG": str(self.kubeconfig)})

    def apply(self, manifest: Path, text: str) -> None:
        manifest.write_text(text)
        self("apply", "--filename", str(manifest))

    def value(self, what: str, path: str) -> str:
        return self("get", what, f"--output=jsonpath={{{path}}}")

    def wait(self, what: str, path: str) -> None:
        self("wait", f"--for=jsonpath={path}", what, "--timeout=50s")


def application(package: str, repository: str) -> str:
    """Return a PackageRepository and an Application ``app`` that uses it. ``repository`` is the repository's spec in YAML."""
    return (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {repository}\n---\n"
        "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: app, namespace: default}\n"
        f"spec: {{packageName: {package}, packageVersion: 1.0.0}}\n"
    )
