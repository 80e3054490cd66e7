"""The connection of a daemon to its cluster. A real child process reads the kubeconfig."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.cluster.api.test_connection import SECRET, write_kubeconfig, write_plugin
from tests.programs import PATIENCE_S
from wharfinger.cluster.api.connection import (
    ConnectionConfigError,
    KubeconfigAuthorization,
    StaticAuthorization,
    TokenFileAuthorization,
    load_connection,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.process.command import Limits
from wharfinger.runtime.daemon import cluster_connection
from wharfinger.runtime.daemon.cluster_connection import read_connection


async def test_the_child_returns_the_same_connection_as_this_process(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"token": SECRET, "as": "ann"}, namespace="prod")
    connection = await read_connection(path, "", tmp_path / "certificates", None)
    assert connection == load_connection(path)
    assert connection.authorization == StaticAuthorization(f"Bearer {SECRET}")
    assert (await read_connection(path, "two", tmp_path / "certificates", None)).server == "http://127.0.0.1:8001"


async def test_certificates_exist_after_the_end_of_the_child(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    cluster: JsonObject = {"server": "https://one.example", "certificate-authority-data": data}
    certificates = tmp_path / "certificates"
    path = write_kubeconfig(tmp_path, {"client-certificate-data": data, "client-key-data": data}, cluster)
    connection = await read_connection(path, "", certificates, None)
    for file in (connection.ca_file, connection.client_certificate, connection.client_key):
        assert file is not None
        assert file.parent == certificates
        assert file.read_text() == "PEM"


async def test_a_token_file_is_read_by_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    path = write_kubeconfig(tmp_path, {"tokenFile": "token"})
    connection = await read_connection(path, "", tmp_path / "certificates", None)
    assert isinstance(connection.authorization, TokenFileAuthorization)
    (tmp_path / "token").write_text("two")
    assert connection.authorization.header(renew=False) == "Bearer two"


async def test_an_error_of_the_child_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="no such file; give one with --kubeconfig"):
        await read_connection(tmp_path / "none", "", tmp_path / "certificates", None)


async def test_a_credential_plugin_runs_once_in_this_process(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    plugin = write_plugin(tmp_path, f"open({str(calls)!r}, 'a').write('x')\nprint({answer!r})")
    exec_: JsonObject = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    connection = await read_connection(write_kubeconfig(tmp_path, {"exec": exec_}), "", tmp_path / "certs", None)
    assert isinstance(connection.authorization, KubeconfigAuthorization)
    assert calls.read_text() == "x"


async def test_a_kubeconfig_in_a_pipe_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, pipe = write_kubeconfig(tmp_path, {"token": SECRET}), tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("KUBECONFIG", str(pipe))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, pipe.write_bytes, path.read_bytes())
        with trio.fail_after(PATIENCE_S):
            connection = await read_connection(None, "", tmp_path / "certificates", None)
    assert connection == load_connection(path)


async def test_an_invalid_path_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="File name too long"):
        await read_connection(tmp_path / ("x" * 300), "", tmp_path / "certificates", None)


async def test_this_process_reads_the_connection_if_its_folder_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_kind: type[Path]) -> Path:
        raise FileNotFoundError

    path = write_kubeconfig(tmp_path, {"token": SECRET})
    expected = load_connection(path)
    monkeypatch.setattr(Path, "cwd", classmethod(gone))
    assert await read_connection(path, "", tmp_path / "certificates", None) == expected


async def test_this_process_reads_the_connection_if_the_child_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_connection, "_LIMITS", Limits(wall_s=30.0, stdout_bytes=1))
    path = write_kubeconfig(tmp_path, {"token": SECRET})
    assert await read_connection(path, "", tmp_path / "certificates", None) == load_connection(path)


async def test_files_of_the_variable_kubeconfig_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_kubeconfig(tmp_path, {"token": SECRET})
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join((str(tmp_path / "none"), str(path))))
    connection = await read_connection(None, "", tmp_path / "certificates", None)
    assert connection.server == "https://one.example:6443"


def test_the_daemon_does_not_import_the_kubernetes_package(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"token": SECRET})
    program = (
        "import sys, trio; from pathlib import Path;"
        "from wharfinger.runtime.daemon.cluster_connection import read_connection;"
        f"trio.run(read_connection, Path({str(path)!r}), '', Path({str(tmp_path)!r}), None);"
        "print(sorted({'kubernetes', 'pydantic', 'requests', 'rich', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
