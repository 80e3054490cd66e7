"""Commands in Pods of an embedded control plane, over a WebSocket on a real socket."""

import hashlib
from pathlib import Path

import pytest
import trio

from tests.control_plane.support.pod_commands import KEY, open_kubelet
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, NotFoundError, UnreachableError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.pod_exec import CommandError, PodCommand


def ignore(_data: bytes) -> None:
    pass


@pytest.mark.parametrize("code", [0, 1, 3, 255])
async def test_output_and_exit_code_are_returned(tmp_path: Path, code: int) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        found = await kubelet.run("sh", "-c", f"echo out; echo err >&2; exit {code}")
        assert found == (code, b"out\n", b"err\n")


async def test_stdin_is_read_to_its_end(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096 * 3
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        assert await kubelet.run("cat", stdin=data) == (0, data, b"")
        code, out, _ = await kubelet.run("sha256sum", stdin=data)
        assert (code, out.split()[0]) == (0, hashlib.sha256(data).hexdigest().encode())
        assert await kubelet.run("cat", stdin=b"") == (0, b"", b"")
        assert await kubelet.run("cat") == (0, b"", b"")


async def test_a_program_may_ignore_its_input(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        assert await kubelet.run("sh", "-c", "exit 4", stdin=bytes(3_000_000)) == (4, b"", b"")


async def test_a_killed_program_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        assert (await kubelet.run("sh", "-c", "kill -9 $$"))[0] == 137


async def test_commands_of_a_pod_share_its_folder(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        uid = await kubelet.start()
        assert (await kubelet.run("sh", "-c", 'echo x > "$HOME/file"'))[0] == 0
        assert await kubelet.run("cat", "file") == (0, b"x\n", b"")
        assert [folder.name for folder in kubelet.folder.iterdir()] == [uid]
    assert list(kubelet.folder.iterdir()) == []


async def test_commands_that_cannot_run_are_errors(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        with pytest.raises(NotFoundError):
            await kubelet.run("true")
        await kubelet.start()
        with pytest.raises(CommandError, match="executable file not found"):
            await kubelet.run("no-such-program")
        other = PodCommand(KEY, ("true",), container="nope")
        with pytest.raises(ApiError, match="container nope is not valid"):
            await kubelet.client.executor.run(other, stdout=ignore, stderr=ignore)


async def test_a_control_plane_without_a_kubelet_refuses_commands(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path, commands=False) as kubelet:
        await kubelet.start()
        with pytest.raises(ApiError, match="there is no kubelet"):
            await kubelet.run("true")


async def test_a_cancelled_command_ends(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        uid = await kubelet.start()
        begun = trio.Event()

        def see(_data: bytes) -> None:
            begun.set()

        async with trio.open_nursery() as nursery:

            async def run() -> None:
                argv = ("sh", "-c", "echo $$; exec sleep 600")
                await kubelet.client.executor.run(PodCommand(KEY, argv), stdout=see, stderr=ignore)

            nursery.start_soon(run)
            await begun.wait()
            nursery.cancel_scope.cancel()
        commands = kubelet.plane.handler.commands
        assert commands is not None
        with trio.fail_after(60):
            await commands.wait_ended(uid)


async def test_a_command_ends_with_its_pod(tmp_path: Path) -> None:
    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        async with trio.open_nursery() as nursery:

            async def delete(_data: bytes = b"") -> None:
                await kubelet.client.delete(KEY)

            async def run() -> None:
                argv = ("sh", "-c", "echo begun; exec sleep 600")
                with pytest.raises(CommandError):
                    await kubelet.client.executor.run(
                        PodCommand(KEY, argv), stdout=lambda _: nursery.start_soon(delete), stderr=ignore
                    )

            nursery.start_soon(run)


async def test_a_sink_that_fails_ends_the_command(tmp_path: Path) -> None:
    def fail(_data: bytes) -> None:
        raise ZeroDivisionError

    async with open_kubelet(tmp_path) as kubelet:
        await kubelet.start()
        with pytest.RaisesGroup(ZeroDivisionError):
            await kubelet.client.executor.run(PodCommand(KEY, ("echo", "x")), stdout=fail, stderr=ignore)


async def test_a_closed_port_is_unreachable() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with open_client(Connection(f"http://127.0.0.1:{port}")) as client:
        with pytest.raises(UnreachableError):
            await client.executor.run(PodCommand(KEY, ("true",)), stdout=ignore, stderr=ignore)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"])
async def test_a_broken_connection_is_an_error(answer: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await stream.aclose()

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        async with open_client(Connection(f"http://127.0.0.1:{port}")) as client:
            with pytest.raises((UnreachableError, CommandError)):
                await client.executor.run(PodCommand(KEY, ("true",)), stdout=ignore, stderr=ignore)
        nursery.cancel_scope.cancel()
