"""Sockets that systemd passes to the daemon: activation by systemd's own tool, and invalid sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.debug.support.socket_client import socket_client
from tests.programs import ROOT
from wharfinger.debug.errors import DebugSocketError
from wharfinger.debug.server.activation import inherited_listener

SERVE = """
import os, pathlib, sys, trio
from tests.debug.support.canned import CannedInspector
from wharfinger.debug.server.server import open_debug_server

async def main():
    with trio.move_on_after(300):
        async with open_debug_server(pathlib.Path("/nonexistent/debug.sock"), CannedInspector()):
            assert not os.get_inheritable(3)
            assert not [name for name in os.environ if name.startswith("LISTEN_")]
            await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)

trio.run(main)
"""


async def test_systemd_socket_activate_passes_the_listener(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    command = ["systemd-socket-activate", f"--listen={path}", "--setenv=PYTHONPATH", sys.executable, "-c", SERVE]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[trio.Process]) -> None:
            process = await trio.lowlevel.open_process(
                command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
            task_status.started(process)
            await process.wait()

        process = await nursery.start(run)
        try:
            assert process.stderr is not None
            announced = b""
            while b"Listening on" not in announced:
                piece = await process.stderr.receive_some()
                assert piece, announced
                announced += piece
            assert (await socket_client(path).daemon()).pid == 4711
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.fail_after(300):
                assert await process.wait() == 0
        finally:
            process.kill()
    assert path.exists()  # the file belongs to systemd, so the daemon does not delete it


def in_child(prepare: str) -> str:
    """Return the result of inherited_listener() in a child process in which ``prepare`` has set up descriptor 3."""
    code = f"""
import os, socket, sys
from wharfinger.debug.server.activation import inherited_listener
from wharfinger.debug.errors import DebugSocketError
{prepare}
try:
    print(inherited_listener({{"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}}))
except DebugSocketError as error:
    print("refused:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        ("os.close(3) if os.path.exists('/proc/self/fd/3') else None", "descriptor 3 is not a socket"),
        ("os.dup2(os.open('/dev/null', os.O_RDONLY), 3)", "descriptor 3 is not a socket"),
        ("s = socket.socket(socket.AF_UNIX); os.dup2(s.fileno(), 3)", "is not a listening Unix"),
        ("s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); os.dup2(s.fileno(), 3)", "is not a listening"),
        ("s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); os.dup2(s.fileno(), 3)", "is not a listening"),
    ],
)
def test_unsuitable_descriptors_are_refused(prepare: str, why: str) -> None:
    said = in_child(prepare)
    assert said.startswith("refused:")
    assert why in said
    assert "wharfinger.socket" in said


@pytest.mark.parametrize(
    "environment",
    [{}, {"LISTEN_FDS": "1"}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_PID": "x", "LISTEN_FDNAMES": "debug"}],
)
def test_sockets_for_another_process_are_ignored(environment: dict[str, str]) -> None:
    assert inherited_listener(environment) is None
    assert environment == {}  # the children of this process must not use it either


@pytest.mark.parametrize("count", ["0", "2", ""])
def test_any_number_of_sockets_but_one_is_refused(count: str) -> None:
    with pytest.raises(DebugSocketError, match=r"systemd passed .* sockets; .*check wharfinger\.socket"):
        inherited_listener({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count})


@pytest.mark.parametrize("kind", ["listening", "not listening", "datagram", "a file"])
async def test_the_inherited_descriptor_is_checked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the descriptor in this process, where coverage is measured. Descriptor 3 is in use here, so another one is tested."""
    if kind == "a file":
        descriptor = os.open(tmp_path, os.O_RDONLY)
    else:
        passed = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM)
        passed.bind(str(tmp_path / "debug.sock"))
        if kind == "listening":
            passed.listen()
        descriptor = passed.detach()
    monkeypatch.setattr("wharfinger.debug.server.activation.FIRST_DESCRIPTOR", descriptor)
    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
    if kind == "listening":
        listener = inherited_listener(environment)
        assert listener is not None
        assert not os.get_inheritable(descriptor)
        await listener.aclose()
        return
    with pytest.raises(DebugSocketError, match="is not a socket" if kind == "a file" else "is not a listening"):
        inherited_listener(environment)
    if kind == "a file":
        os.close(descriptor)
