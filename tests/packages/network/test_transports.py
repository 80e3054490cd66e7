"""Connections to a registry on loopback: through a proxy, with a client certificate, and with resumed transfers.

The registry is the real program docker-registry. It serves TLS with a certificate from a certificate authority of the tests.
The proxy is a real one that accepts any host name.
"""

import ssl
from pathlib import Path

import pytest
import trio

from tests.packages.support.connect_proxy import LOGIN, open_connect_proxy
from tests.packages.support.faulty_registry import Reply, open_faulty_registry
from tests.packages.support.registry_contract import REPOSITORY, push, read
from tests.registry_server import PASSWORD, USER, Certificate, make_certificate, open_registry_server
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.address import RegistryAddress, Scheme
from wharfinger.packages.registry.connection import RegistryAccess, RegistryRequest, Timeouts, open_connection
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_registry import open_registry

HOST = "registry.test"
GET = RegistryRequest("GET", "/v2/x", "x", "the thing")
LAYER = bytes(range(256)) * 4096


async def certificate(folder: Path, name: str = f"DNS:{HOST}") -> Certificate:
    return await trio.to_thread.run_sync(make_certificate, folder, name)


@pytest.mark.parametrize("login", ["", LOGIN])
async def test_a_registry_can_be_reached_through_a_proxy(login: str, tmp_path: Path) -> None:
    made = await certificate(tmp_path / "tls")
    async with (
        open_registry_server(tmp_path, with_password=True, certificate=made) as address,
        open_connect_proxy() as proxy,
    ):
        proxy.demands_login = bool(login)
        access = RegistryAccess(proxies=read_proxies({"HTTPS_PROXY": proxy.url(login)}))
        async with open_registry(
            RegistryAddress(HOST, address.port),
            scheme="https",
            credentials=Credentials(USER, PASSWORD),
            ca=made.file.read_text(),
            access=access,
        ) as registry:
            pushed = await push(registry, "1.0.0", LAYER)
            manifest = await registry.manifest(REPOSITORY, pushed.digest)
            assert await read(registry, manifest.layers[0]) == LAYER
        assert set(proxy.requests) == {f"CONNECT {HOST}:{address.port}"}


async def test_a_registry_over_http_can_be_reached_through_a_proxy(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_connect_proxy() as proxy:
        access = RegistryAccess(proxies=read_proxies({"HTTP_PROXY": proxy.url()}))
        async with open_registry(RegistryAddress(HOST, address.port), scheme="http", access=access) as registry:
            pushed = await push(registry, "1.0.0")
            assert await registry.resolve(REPOSITORY, "1.0.0") == pushed
        assert f"GET http://{HOST}:{address.port}/v2/{REPOSITORY}/manifests/1.0.0" in proxy.requests


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("login", ["", "porter:wrong"])
async def test_a_missing_or_refused_login_at_a_proxy_is_reported(login: str, scheme: Scheme) -> None:
    async with open_connect_proxy() as proxy:
        proxy.demands_login = True
        address = proxy.url(login)
        access = RegistryAccess(proxies=read_proxies({"HTTPS_PROXY": address, "HTTP_PROXY": address}))
        async with open_connection(
            RegistryAddress(HOST), scheme=scheme, credentials=None, ca="", patience=Timeouts(), access=access
        ) as connection:
            with pytest.raises(RegistryError) as caught:
                await connection.ask(GET, max_bytes=10)
    via = f" through the proxy 127.0.0.1:{proxy.port}" if scheme == "https" else ""
    assert str(caught.value) == (
        f"the thing{via}: the proxy demands a login (407); put it into the proxy's address: "
        "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
    )
    assert not caught.value.transient


async def test_refusing_and_unreachable_proxies_are_reported() -> None:
    async with open_connect_proxy() as proxy:
        proxy.refuses = True
        via = f"the thing through the proxy 127.0.0.1:{proxy.port}"
        access = RegistryAccess(proxies=read_proxies({"HTTPS_PROXY": proxy.url(LOGIN)}))
        async with open_connection(
            RegistryAddress(HOST), scheme="https", credentials=None, ca="", patience=Timeouts(), access=access
        ) as connection:
            with pytest.raises(RegistryError) as caught:
                await connection.ask(GET, max_bytes=10)
    assert str(caught.value) == (
        f"{via}: the proxy refused the connection (403 Forbidden); ask its operator to allow this host, or name the host in "
        "NO_PROXY"
    )
    assert caught.value.transient
    async with open_connection(
        RegistryAddress(HOST), scheme="https", credentials=None, ca="", patience=Timeouts(), access=access
    ) as connection:
        with pytest.raises(RegistryError, match=via) as caught:
            await connection.ask(GET, max_bytes=10)
    assert caught.value.transient
    assert "s3cret" not in str(caught.value)


async def test_a_client_certificate_is_sent_to_a_registry_that_requires_one(tmp_path: Path) -> None:
    server, client = await certificate(tmp_path / "server", "IP:127.0.0.1"), await certificate(tmp_path / "client")
    ca = server.file.read_text()
    known = RegistryAccess(ClientCertificate(client.file.read_text(), client.key.read_text()))
    async with open_registry_server(tmp_path, certificate=server, client_ca=client.file) as address:
        async with open_registry(address, scheme="https", ca=ca, access=known) as registry:
            pushed = await push(registry, "1.0.0")
            assert await registry.resolve(REPOSITORY, "1.0.0") == pushed
        async with open_registry(address, scheme="https", ca=ca) as registry:
            with pytest.raises(RegistryError, match=r"demands one: .*; give one with spec\.registry\.tlsSecret"):
                await registry.resolve(REPOSITORY, "1.0.0")


async def test_a_redirect_to_another_server_does_not_carry_the_certificate(tmp_path: Path) -> None:
    server, client = await certificate(tmp_path / "server", "IP:127.0.0.1"), await certificate(tmp_path / "client")
    demanding = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client.file))
    demanding.load_cert_chain(server.file, server.key)
    demanding.verify_mode = ssl.CERT_REQUIRED
    known = RegistryAccess(ClientCertificate(client.file.read_text(), client.key.read_text()))
    async with (
        open_faulty_registry(demanding) as registry,
        open_faulty_registry(demanding) as other,
        open_connection(
            registry.address,
            scheme="https",
            credentials=Credentials(USER, PASSWORD),
            ca=server.file.read_text(),
            patience=Timeouts(),
            access=known,
        ) as connection,
    ):
        registry.on("GET", "/v2/x", Reply(body=b"yes"), Reply(302, (("Location", f"https://{other.address}/y"),)))
        assert (await connection.ask(GET, max_bytes=10)).body == b"yes"
        with pytest.raises(RegistryError):
            await connection.ask(GET, max_bytes=10)
        assert other.requests == []


async def test_a_broken_transfer_is_resumed_through_a_proxy(tmp_path: Path) -> None:
    """The proxy cuts the first connections in the middle of the layer, and the registry sends the rest on request."""
    async with open_registry_server(tmp_path) as address, open_connect_proxy() as proxy:
        async with open_registry(address, scheme="http") as registry:
            pushed = await push(registry, "1.0.0", LAYER)
            layer = (await registry.manifest(REPOSITORY, pushed.digest)).layers[0]
        access = RegistryAccess(proxies=read_proxies({"HTTP_PROXY": proxy.url()}))
        async with open_registry(RegistryAddress(HOST, address.port), scheme="http", access=access) as registry:
            proxy.cut = [500_000, 300_000, 100_000]
            assert await read(registry, layer) == LAYER
        assert len(proxy.requests) == 4
