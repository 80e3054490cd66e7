"""Kubeconfigs written from connections: reading one back results in an equal connection, and kubectl accepts it."""

import base64
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.packages.support.charts import tool
from wharfinger.cluster.api.connection import (
    Connection,
    ConnectionConfigError,
    StaticAuthorization,
    bearer,
    load_connection,
)
from wharfinger.cluster.api.kubeconfig_document import current_kubeconfig, kubeconfig_document
from wharfinger.formats.json.value import encode_json, find

PLAIN = Connection("https://api.example:6443/some/path", bearer("a-token"), namespace="prod")
BASIC = StaticAuthorization("Basic " + base64.b64encode(b"me:it is : secret").decode())
HEADERS = (
    ("Impersonate-User", "else"),
    ("Impersonate-Uid", "7"),
    ("Impersonate-Group", "a"),
    ("Impersonate-Group", "b"),
    ("Impersonate-Extra-scope", "x"),
    ("Impersonate-Extra-scope", "y"),
)


def read_again(connection: Connection, folder: Path) -> Connection:
    path = folder / "kubeconfig"
    path.write_bytes(encode_json(kubeconfig_document(connection, connection.authorization.header(renew=False))))
    return load_connection(path)


@pytest.mark.parametrize(
    "connection",
    [
        PLAIN,
        replace(PLAIN, authorization=StaticAuthorization()),
        replace(PLAIN, authorization=BASIC),
        replace(PLAIN, verify_tls=False, tls_server_name="other.example", namespace="default"),
        replace(PLAIN, headers=HEADERS),
        replace(PLAIN, server="http://127.0.0.1:8001"),
        replace(PLAIN, server="http://[::1]:8001/x", authorization=BASIC),
        replace(PLAIN, server="http://localhost", authorization=StaticAuthorization()),
    ],
)
def test_a_written_connection_is_read_back_unchanged(connection: Connection, tmp_path: Path) -> None:
    assert read_again(connection, tmp_path) == connection


def test_files_and_proxy_are_written(tmp_path: Path) -> None:
    for name in ("ca.crt", "client.crt", "client.key"):
        (tmp_path / name).write_text(name)
    connection = replace(
        PLAIN,
        authorization=StaticAuthorization(),
        ca_file=tmp_path / "ca.crt",
        client_certificate=tmp_path / "client.crt",
        client_key=tmp_path / "client.key",
        proxy="http://proxy.example:3128",
    )
    again = read_again(connection, tmp_path)
    assert again.proxy == connection.proxy
    files = (again.ca_file, again.client_certificate, again.client_key)
    # The content is embedded, because another user could not read the files.
    assert [path.read_text() for path in files if path is not None] == ["ca.crt", "client.crt", "client.key"]
    assert not [path for path in files if path is not None and path.is_relative_to(tmp_path)]


def test_a_missing_certificate_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match=r"certificate .*/ca\.crt: No such file or directory"):
        kubeconfig_document(replace(PLAIN, ca_file=tmp_path / "ca.crt"), "")


def test_over_plain_http_the_address_carries_the_credentials() -> None:
    plain = replace(PLAIN, server="http://127.0.0.1:8001")
    document = kubeconfig_document(plain, "Bearer a/b@c")
    assert find(document, "clusters", 0, "cluster", "server") == "http://wharfinger:a%2Fb%40c@127.0.0.1:8001"
    document = kubeconfig_document(PLAIN, "Bearer a/b@c")
    assert find(document, "clusters", 0, "cluster", "server") == PLAIN.server


@pytest.mark.parametrize(
    "header", ["Negotiate abc", "Bearer", "Basic ?", "Basic " + base64.b64encode(b"\xff").decode()]
)
def test_inexpressible_headers_are_refused_without_quoting_them(header: str) -> None:
    with pytest.raises(ConnectionConfigError) as caught:
        kubeconfig_document(PLAIN, header)
    assert header not in str(caught.value)


async def test_kubectl_accepts_the_document(tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path):
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        path = tmp_path / "given"
        path.write_bytes(encode_json(await current_kubeconfig(connection)))
        command = [str(tool("kubectl")), f"--kubeconfig={path}", "get", "namespace", "default", "-o", "json"]
        done = await trio.run_process(
            command, capture_stdout=True, env={"HOME": str(tmp_path), "PATH": os.defpath, "KUBECONFIG": os.devnull}
        )
        assert json.loads(done.stdout)["metadata"]["name"] == "default"
