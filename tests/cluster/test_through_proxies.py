"""Clients behind a real forward proxy that the kubeconfig or ``HTTPS_PROXY`` names, and tokens that are rotated."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, key
from tests.cluster.support.tcp_proxy import open_proxy
from tests.packages.support.connect_proxy import LOGIN, open_connect_proxy
from tests.programs import PATIENCE_S
from wharfinger.cluster.api.connection import Connection, TokenFileAuthorization, load_connection
from wharfinger.cluster.api.errors import FencedError, NotFoundError, UnreachableError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.control_plane.serving import Address, serve_control_plane
from wharfinger.control_plane.storage.memory import MemoryStorage


@asynccontextmanager
async def served(folder: Path, storage: MemoryStorage, token: str = "one") -> AsyncIterator[Connection]:
    """Serve a control plane over TLS that accepts one token."""
    path = folder / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, token, simulate=False, tls=True, storage=storage):
        yield await trio.to_thread.run_sync(load_connection, path)


async def seen(informer: Informer, name: str) -> None:
    """Wait until the informer knows an object."""
    with trio.fail_after(PATIENCE_S), informer.changes() as changes:
        while informer.get(key(name)) is None:
            await changes.wait()


async def use(client: HttpClusterClient) -> None:
    """Create an object, and wait until a watch reports it."""
    async with open_informer(client, CONFIG_MAP) as informer:
        with trio.fail_after(PATIENCE_S):
            await informer.wait_first_list()
        await client.create(config_map("a"))
        await seen(informer, "a")


async def test_requests_and_watches_go_through_the_proxy_of_the_kubeconfig(tmp_path: Path) -> None:
    async with served(tmp_path, MemoryStorage()) as connection, open_connect_proxy() as proxy:
        async with open_client(replace(connection, proxy=proxy.url())) as client:
            await use(client)
        port = urlsplit(connection.server).port
        assert set(proxy.requests) == {f"CONNECT 127.0.0.1:{port}"}


async def test_requests_and_watches_go_through_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, MemoryStorage()) as connection, open_connect_proxy() as proxy:
        port = urlsplit(connection.server).port
        named = tmp_path / "named"
        text = (tmp_path / "kubeconfig").read_text().replace("127.0.0.1", "api.example")
        named.write_text(text)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url())
        monkeypatch.delenv("NO_PROXY", raising=False)
        found = await trio.to_thread.run_sync(load_connection, named)
        assert found.proxy == proxy.url()
        # The name api.example is not in the certificate, but localhost is.
        async with open_client(replace(found, tls_server_name="localhost")) as client:
            await use(client)
        assert set(proxy.requests) == {f"CONNECT api.example:{port}"}


async def test_a_refusal_by_the_proxy_is_reported_without_the_login(tmp_path: Path) -> None:
    async with served(tmp_path, MemoryStorage()) as connection, open_connect_proxy() as proxy:
        proxy.demands_login = True
        async with open_client(replace(connection, proxy=proxy.url("porter:wrong"))) as client:
            with pytest.raises(UnreachableError, match="the proxy answered 407") as caught:
                await client.server_version()
            assert "wrong" not in str(caught.value)
        async with open_client(replace(connection, proxy=proxy.url(LOGIN))) as client:
            await use(client)
        proxy.refuses = True
        async with open_client(replace(connection, proxy=proxy.url(LOGIN))) as client:
            with pytest.raises(UnreachableError, match="the proxy answered 403"):
                await client.server_version()


@pytest.mark.parametrize("tls", [False, True])
async def test_a_write_through_httpx_is_fenced_at_its_first_byte(*, tls: bool, tmp_path: Path) -> None:
    """Behind an https or SOCKS proxy, the client uses httpx. It calls the fence, which may refuse the write, before it connects
    and again before it sends the first byte.
    """
    asked: list[str] = []
    permitted = 1

    def fence(what: str) -> None:
        asked.append(what)
        if len(asked) > permitted:
            raise FencedError(what)

    path = tmp_path / "kubeconfig"
    async with (
        serve_control_plane(Address("127.0.0.1", 0), path, "one", simulate=False, tls=tls),
        open_connect_proxy() as proxy,
    ):
        connection = await trio.to_thread.run_sync(load_connection, path)
        by_httpx = httpx.AsyncHTTPTransport(verify=False, proxy=proxy.url())
        options = ClientOptions(before_write=fence)
        async with open_client(connection, transport=by_httpx, options=options) as client:
            with pytest.raises(FencedError):
                await client.create(config_map("a"))
            with pytest.raises(NotFoundError):
                await client.get(key("a"))
            assert len(asked) == 2
            permitted = 10
            await client.create(config_map("a"))


async def test_a_token_rotated_in_its_file_is_used_at_once_by_requests_and_watches(tmp_path: Path) -> None:
    storage, token = MemoryStorage(), tmp_path / "token"
    token.write_text("one")
    later = tmp_path / "later"
    later.mkdir()
    async with served(tmp_path, storage) as connection, open_proxy(urlsplit(connection.server).port or 0) as proxy:
        ours = replace(
            connection,
            server=f"https://127.0.0.1:{proxy.port}",
            authorization=TokenFileAuthorization(token),
            verify_tls=False,
        )
        async with open_client(ours) as client, open_informer(client, CONFIG_MAP, jitter=lambda: 0.9) as informer:
            await client.create(config_map("a"))
            await seen(informer, "a")
            async with served(later, storage, "two") as other:
                token.write_text("two")  # the kubelet renews a token before the old one expires
                proxy.upstream = urlsplit(other.server).port or 0
                proxy.drop()
                await client.get(key("a"))  # a read is repeated over a new connection
                await client.create(config_map("b"))
                await seen(informer, "b")
