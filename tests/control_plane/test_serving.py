import errno
import os
import shutil
import signal
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from wharfinger.cluster.api.connection import load_connection
from wharfinger.control_plane import serving
from wharfinger.control_plane.access import certificates
from wharfinger.control_plane.service import FIRST_NAMESPACES
from wharfinger.control_plane.serving import (
    Address,
    ControlPlaneStartError,
    parse_address,
    run_until_stopped,
    serve_control_plane,
)
from wharfinger.control_plane.storage.interface import Change, Key, StorageError
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject

LOOPBACK = Address("127.0.0.1", 0)
AUTHORIZED = {"authorization": "Bearer sesame"}


@pytest.mark.parametrize(
    ("text", "address", "url_host", "loopback"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0), "127.0.0.1", True),
        ("localhost:8001", Address("127.0.0.1", 8001), "127.0.0.1", True),
        ("[::1]:65535", Address("::1", 65535), "[::1]", True),
        ("[0:0::1]:1", Address("::1", 1), "[::1]", True),
        ("192.0.2.1:80", Address("192.0.2.1", 80), "192.0.2.1", False),
        ("[::]:80", Address("::", 80), "[::]", False),
    ],
)
def test_valid_addresses_are_parsed(text: str, address: Address, url_host: str, loopback: bool) -> None:
    assert parse_address(text) == address
    assert (address.url_host, address.loopback) == (url_host, loopback)


@pytest.mark.parametrize(
    "text",
    ["", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:²", "host:80", "[::1"],
)
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_address(text)


async def test_the_server_runs_as_long_as_the_block(tmp_path: Path) -> None:
    path = tmp_path / "new" / "kubeconfig"
    async with serve_control_plane(LOOPBACK, path, "sesame", simulate=False) as serving, httpx.AsyncClient() as client:
        assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
        url = f"http://127.0.0.1:{serving.address.port}"
        assert load_connection(path).server == url
        assert (serving.kubeconfig, serving.address.host) == (path, "127.0.0.1")
        assert (await client.get(f"{url}/api", headers=AUTHORIZED)).json()["serverAddressByClientCIDRs"] == [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": url.removeprefix("http://")}
        ]
        assert (await client.get(f"{url}/api", headers={"authorization": "Bearer wrong"})).status_code == 401
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", serving.address.port)


async def test_leaving_the_block_ends_watches_cleanly(tmp_path: Path) -> None:
    async with httpx.AsyncClient(headers=AUTHORIZED) as client, AsyncExitStack() as stack:
        async with serve_control_plane(LOOPBACK, tmp_path / "kubeconfig", "sesame", simulate=False) as serving:
            url = f"http://127.0.0.1:{serving.address.port}/api/v1/namespaces?watch=1"
            response = await stack.enter_async_context(client.stream("GET", url))
            chunks = response.aiter_raw()
            assert isinstance(chunks, AsyncGenerator)
            await stack.enter_async_context(aclosing(chunks))
            seen = b""
            while seen.count(b'"ADDED"') < len(FIRST_NAMESPACES) or not seen.endswith(b"\n"):
                seen += await anext(chunks)
            assert serving.control_plane.handler.metrics.watches.total() == 1
        assert [chunk async for chunk in chunks] == []
        assert serving.control_plane.handler.metrics.watches.total() == 0


async def test_a_port_in_use_is_a_start_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ControlPlaneStartError, match=rf"cannot listen on 127\.0\.0\.1 port {port}: .*in use"):
            async with serve_control_plane(Address("127.0.0.1", port), tmp_path / "kubeconfig", "sesame"):
                pytest.fail("it was served")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "name"), [(certificates, "kept_authority"), (serving, "write_secret_file")])
async def test_the_remedy_for_a_full_disk_is_free_space(
    place: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(place, name, full)
    with pytest.raises(ControlPlaneStartError, match=r"No space left on device; free some disk space$"):
        await run_until_stopped(Address("127.0.0.1", 0), tmp_path / "kubeconfig", "sesame", pytest.fail, tls=True)


async def test_an_unwritable_kubeconfig_leaves_the_port_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])
    (tmp_path / "file").write_text("")
    with pytest.raises(ControlPlaneStartError, match=r"cannot write the kubeconfig .*/file/kubeconfig: "):
        await run_until_stopped(address, tmp_path / "file" / "kubeconfig", "sesame", pytest.fail)
    async with serve_control_plane(address, tmp_path / "kubeconfig", "sesame", simulate=False) as serving:
        assert serving.address == address


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server(sign: signal.Signals, tmp_path: Path) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        signal.raise_signal(sign)

    await run_until_stopped(LOOPBACK, tmp_path / "kubeconfig", "sesame", say)

    server = load_connection(tmp_path / "kubeconfig").server
    assert lines == [f"control plane ready at {server}, kubeconfig {tmp_path / 'kubeconfig'}"]


async def test_the_end_of_the_lifeline_ends_the_server(tmp_path: Path) -> None:
    ours, theirs = os.pipe()

    def say(_: str) -> None:
        os.write(theirs, b"what is said does not matter")
        os.close(theirs)

    try:
        await run_until_stopped(LOOPBACK, tmp_path / "kubeconfig", "sesame", say, lifeline=ours)
        os.fstat(ours)  # the pipe is still open, because it belongs to the caller
    finally:
        os.close(ours)


class FullStorage(MemoryStorage):
    """A storage that refuses every write."""

    def put(self, key: Key, obj: JsonObject) -> Change:
        raise StorageError(f"no room for {key.name}")


async def test_an_unwritable_storage_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no room for default"):
        await run_until_stopped(LOOPBACK, tmp_path / "kubeconfig", "sesame", pytest.fail, storage=FullStorage())


async def test_errors_of_the_ready_callback_are_raised(tmp_path: Path) -> None:
    def say(line: str) -> None:
        raise RuntimeError(line)

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="ready at"), flatten_subgroups=True):
        await run_until_stopped(LOOPBACK, tmp_path / "kubeconfig", "sesame", say, simulate=False)


async def test_a_second_signal_ends_the_server_at_once(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    """The clock stands still, so the server would wait for the unfinished request for ever without the second signal."""
    ready = trio.Event()

    async def serve() -> None:
        path = tmp_path / "kubeconfig"
        await run_until_stopped(LOOPBACK, path, "sesame", lambda _: ready.set(), simulate=False)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await ready.wait()
        port = int(load_connection(tmp_path / "kubeconfig").server.rpartition(":")[2])
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
            await stream.send_all(whole + b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            async for _ in stream:
                pass
    assert mock_clock.current_time() == 0


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
async def test_kubectl_trusts_the_authority_over_tls(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, "token", tls=True, simulate=False) as serving:
        assert serving.url.startswith("https://127.0.0.1:")
        first = await trio.run_process(
            ["kubectl", "--kubeconfig", str(path), "get", "namespaces", "-o", "name"], capture_stdout=True
        )
        assert b"namespace/default" in first.stdout
    async with serve_control_plane(Address("127.0.0.1", 0), tmp_path / "again", "token", tls=True, simulate=False):
        assert (tmp_path / "tls" / "ca.crt").exists()
