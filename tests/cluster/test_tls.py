"""TLS settings of connections, tested with real certificates and real handshakes over loopback."""

import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from wharfinger.cluster.api.connection import Connection, ConnectionConfigError
from wharfinger.cluster.api.errors import ClusterError, UnreachableError
from wharfinger.cluster.api.http_client import open_client

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two CAs, server certificates for 127.0.0.1 and for ``kubernetes``, and a client certificate."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")
    for name, names in (("server", "IP:127.0.0.1"), ("named", "DNS:kubernetes"), ("client", "DNS:client")):
        openssl("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        signed_by = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{name}.ext")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed_by, "-out", f"{name}.crt")
    return folder


@asynccontextmanager
async def server(folder: Path, *, certificate: str = "server", mutual: bool = False) -> AsyncIterator[Connection]:
    """Serve ``/version`` over TLS. With ``mutual``, a client must present a certificate that the CA has signed."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / f"{certificate}.crt", folder / f"{certificate}.key")
    if mutual:
        context.load_verify_locations(folder / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    plain = await trio.open_tcp_listeners(0, host="127.0.0.1")
    listeners = [trio.SSLListener(listener, context, https_compatible=True) for listener in plain]

    async def answer(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            async with stream:
                await stream.receive_some()
                body = b'{"gitVersion": "v1.99.0"}'
                await stream.send_all(
                    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body)
                )
        except trio.BrokenResourceError:
            return  # the client refused the handshake

    port = plain[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, listeners)
        yield Connection(f"https://127.0.0.1:{port}", ca_file=folder / "ca.crt")
        nursery.cancel_scope.cancel()


async def version(connection: Connection) -> str:
    async with open_client(connection) as client:
        return await client.server_version()


async def test_only_the_ca_of_the_kubeconfig_is_trusted(certificates: Path) -> None:
    async with server(certificates) as connection:
        assert await version(connection) == "v1.99.0"
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await version(replace(connection, ca_file=certificates / "other.crt"))
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await version(replace(connection, ca_file=None))


async def test_verification_is_skipped_only_if_configured(certificates: Path) -> None:
    async with server(certificates, certificate="named") as connection:
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await version(connection)
        assert await version(replace(connection, verify_tls=False, ca_file=None)) == "v1.99.0"


async def test_the_server_may_have_another_name(certificates: Path) -> None:
    async with server(certificates, certificate="named") as connection:
        assert await version(replace(connection, tls_server_name="kubernetes")) == "v1.99.0"


async def test_client_certificates_are_sent(certificates: Path) -> None:
    async with server(certificates, mutual=True) as connection:
        with pytest.raises(UnreachableError):
            await version(connection)
        ours = replace(
            connection, client_certificate=certificates / "client.crt", client_key=certificates / "client.key"
        )
        assert await version(ours) == "v1.99.0"


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: {"ca_file": folder / "none"},
        lambda folder: {"ca_file": folder / "ca.key"},
        lambda folder: {"client_certificate": folder / "ca.crt", "client_key": folder / "other.key"},
    ],
)
async def test_unusable_certificates_are_refused(certificates: Path, damage: Callable[[Path], dict[str, Path]]) -> None:
    changed = damage(certificates)
    connection = Connection(
        "https://127.0.0.1:1",
        ca_file=changed.get("ca_file"),
        client_certificate=changed.get("client_certificate"),
        client_key=changed.get("client_key"),
    )
    with pytest.raises(ConnectionConfigError, match="certificates cannot be used"):
        await version(connection)


async def test_unusable_proxies_are_refused() -> None:
    with pytest.raises(ConnectionConfigError, match="proxy cannot be used"):
        await version(Connection("http://127.0.0.1:1", proxy="gopher://user:secret@127.0.0.1:1"))


async def test_a_closed_port_is_unreachable() -> None:
    async with open_client(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(
            ClusterError, match=r"read the server's version: no answer from http://127\.0\.0\.1:1: "
        ) as caught:
            await client.server_version()
    assert caught.value.transient
