import argparse
import io
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.control_plane.support.served import READY, served
from tests.programs import PATIENCE_S, attempt, program, wharfinger
from wharfinger.cluster.api.connection import load_connection
from wharfinger.control_plane.commands import add_control_plane
from wharfinger.control_plane.service import FIRST_NAMESPACES


def control_plane(*arguments: str) -> int:
    """Run ``wharfinger control-plane`` in this process, and return its exit code."""
    parser = argparse.ArgumentParser()
    add_control_plane(parser)
    args = parser.parse_args(arguments)
    code: int = args.handler(args)
    return code


def one_error(text: str) -> str:
    """Return the single error line of a failed command."""
    [line] = text.splitlines()
    assert line.startswith("error: ")
    return line


class _StopsWhenReady(io.StringIO):
    """A standard output that stops the process as soon as the ready line is printed."""

    def write(self, text: str) -> int:
        if READY in text:
            signal.raise_signal(signal.SIGTERM)
        return super().write(text)


CLOSES = """\
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from wharfinger.control_plane import commands
from wharfinger.control_plane.storage import sqlite as sqlite_storage

@contextmanager
def open_storage(path):
    yield None
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    print("closed")

sqlite_storage.open_sqlite_storage = open_storage
sys.exit(commands._serve(lambda storage: None, Path("data.db")))
"""


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("sign", ["SIGTERM", "SIGINT"])
def test_a_second_signal_does_not_interrupt_closing_the_data_file(sign: str) -> None:
    done = attempt(sys.executable, "-c", CLOSES, sign)
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed\n", "")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_process_prints_its_address_and_ends_at_a_signal(sign: signal.Signals, tmp_path: Path) -> None:
    with served(tmp_path) as plane:
        assert stat.S_IMODE(plane.kubeconfig.stat().st_mode) == 0o600
        assert stat.S_IMODE(plane.kubeconfig.parent.stat().st_mode) == 0o700
        server = load_connection(plane.kubeconfig).server
        assert plane.process.wait_line(READY) == f"control plane ready at {server}, kubeconfig {plane.kubeconfig}"
        assert httpx.get(f"{server}/readyz", verify=plane.trust).text == "ok"
        assert httpx.get(f"{server}/api/v1/namespaces", verify=plane.trust).status_code == 403

        plane.process.process.send_signal(sign)

        assert plane.process.wait() == 0
    assert len(plane.process.lines) == 1


@pytest.mark.slow
def test_the_process_ends_at_the_end_of_its_standard_input(tmp_path: Path) -> None:
    words = wharfinger("control-plane", "--until-stdin-ends", "--listen", "127.0.0.1:0")
    with subprocess.Popen(
        [*words, "--kubeconfig", str(tmp_path / "kubeconfig")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(READY)
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_watches_end_at_a_signal(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("sesame\n")
    with served(tmp_path, "--token-file", str(token)) as plane:
        url = f"{load_connection(plane.kubeconfig).server}/api/v1/namespaces?watch=1"
        authorized = {"authorization": "Bearer sesame"}
        with httpx.stream("GET", url, headers=authorized, timeout=60, verify=plane.trust) as response:
            lines = response.iter_lines()
            assert all('"ADDED"' in next(lines) for _ in FIRST_NAMESPACES)
            plane.process.process.send_signal(signal.SIGTERM)
            assert list(lines) == []
        assert plane.process.wait() == 0


@pytest.mark.slow
def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = attempt(
            *wharfinger("control-plane", "--listen", f"127.0.0.1:{port}", "--kubeconfig", str(tmp_path / "k"))
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot listen on 127.0.0.1 port {port}: " in one_error(done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_unwritable_kubeconfig_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "kubeconfig"
    done = attempt(*wharfinger("control-plane", "--kubeconfig", str(path)))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot use the certificate authority for TLS in {path.parent / 'tls'}: " in one_error(done.stderr)
    done = attempt(*wharfinger("control-plane", "--no-tls", "--kubeconfig", str(path)))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot write the kubeconfig {path}: " in one_error(done.stderr)


@pytest.mark.slow
def test_listening_for_other_machines_needs_allow_remote(tmp_path: Path) -> None:
    arguments = ("--listen", "0.0.0.0:0", "--kubeconfig", str(tmp_path / "kubeconfig"))
    done = attempt(*wharfinger("control-plane", *arguments))
    assert done.returncode == 2
    assert "add --allow-remote" in one_error(done.stderr)
    assert list(tmp_path.iterdir()) == []

    for more, scheme in (((), "https"), (("--no-tls",), "http")):
        with program(*wharfinger("control-plane", *arguments, "--allow-remote", *more)) as process:
            process.wait_line(f"control plane ready at {scheme}://0.0.0.0:")
            process.process.terminate()
            assert process.wait() == 0


def test_the_command_restores_signal_handlers_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = _StopsWhenReady()
    monkeypatch.setattr(sys, "stdout", output)
    before = signal.getsignal(signal.SIGTERM)

    assert control_plane("--kubeconfig", str(tmp_path / "kubeconfig")) == 0

    assert output.getvalue().startswith(READY)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("nonsense", "'nonsense' is not an address; write it as 127.0.0.1:0"),
        ("127.0.0.1:65536", "is not an address"),
        ("256.0.0.1:80", "does not appear to be an IPv4 or IPv6 address"),
        ("192.0.2.1:80", "other machines could reach it"),
    ],
)
def test_invalid_listen_addresses_are_refused(
    listen: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert control_plane("--listen", listen, "--kubeconfig", str(tmp_path / "kubeconfig")) == 2
    assert words in one_error(capsys.readouterr().err)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"two words", b"two\nlines", b"\xff", "é".encode(), b"a\x00", b"x" * 513]
)
def test_invalid_token_files_are_refused(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    assert control_plane("--token-file", str(path), "--kubeconfig", str(tmp_path / "kubeconfig")) == 1
    assert "give a file that holds one token" in one_error(capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_token_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "token"
    assert control_plane("--token-file", str(path), "--kubeconfig", str(tmp_path / "kubeconfig")) == 1
    assert f"'{path}'" in one_error(capsys.readouterr().err)


@pytest.mark.slow
def test_state_token_and_port_survive_a_restart(tmp_path: Path) -> None:
    """After the process was killed and started again, clients can use the same kubeconfig and read the same objects."""
    arguments = ("--data", str(tmp_path / "state" / "data.db"), "--token-file", str(tmp_path / "state" / "token"))
    with served(tmp_path, *arguments) as plane:
        plane.run("kubectl", "create", "configmap", "kept", "--from-literal=a=1")
        before = plane.run("kubectl", "get", "configmap", "kept", "-o", "yaml")
        server = load_connection(plane.kubeconfig).server
        plane.process.process.kill()
        assert plane.process.wait() == -signal.SIGKILL
    kubeconfig = plane.kubeconfig.read_bytes()

    with served(tmp_path, *arguments, "--listen", server.removeprefix("https://")) as again:
        assert again.kubeconfig.read_bytes() == kubeconfig
        assert again.run("kubectl", "get", "configmap", "kept", "-o", "yaml") == before
        done = attempt(*wharfinger("control-plane", *arguments, "--kubeconfig", str(tmp_path / "k")))
        assert (done.returncode, done.stdout) == (1, "")
        assert "data.db is in use by another process; stop the control plane" in one_error(done.stderr)
        again.process.process.terminate()
        assert again.process.wait() == 0
    assert {entry.name for entry in (tmp_path / "state").iterdir()} == {"data.db", "kubeconfig", "tls", "token"}


def test_a_damaged_data_file_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.db"
    path.write_bytes(b"no database" * 100)
    assert control_plane("--data", str(path), "--kubeconfig", str(tmp_path / "kubeconfig")) == 1
    assert one_error(capsys.readouterr().err).startswith(f"error: the data file {path} is damaged (")
    assert path.read_bytes() == b"no database" * 100


def test_start_errors_in_this_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kubeconfig" / "full").mkdir(parents=True)
    assert control_plane("--kubeconfig", str(tmp_path / "kubeconfig")) == 1
    assert one_error(capsys.readouterr().err).endswith("choose another folder with --kubeconfig")


@pytest.mark.slow
def test_any_token_of_printable_characters_authenticates(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a/b:c@d%41?#[]\\")
    with served(tmp_path, "--token-file", str(tmp_path / "token")) as plane:
        assert "default" in plane.run("kubectl", "get", "namespaces", "-o", "name")


@pytest.mark.slow
def test_injected_faults_reach_clients_and_are_counted(tmp_path: Path) -> None:
    rules = tmp_path / "faults.yaml"
    rules.write_text("- {fault: error, verb: get, kind: configmaps, code: 503, times: 1}\n")
    with served(tmp_path, "--chaos", str(rules), "--chaos-seed", "7") as plane:
        assert "an injected fault" in plane.refused("kubectl", "get", "configmap", "x")
        assert "(NotFound)" in plane.refused("kubectl", "get", "configmap", "x")
        metrics = plane.run("kubectl", "get", "--raw", "/metrics")
        assert 'wharfinger_faults_injected_total{fault="error"} 1' in metrics
        assert plane.process.wait_line("fault error:") == "fault error: get configmaps default/x"


@pytest.mark.parametrize(
    ("rules", "words"),
    [("explode", "there is no fault 'explode'"), ("latency", "delay is missing"), ("absent.yaml", "No such file")],
)
def test_invalid_fault_rules_are_reported(
    rules: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert control_plane("--kubeconfig", str(tmp_path / "kubeconfig"), "--chaos", rules) == 2
    assert words in one_error(capsys.readouterr().err)


@pytest.mark.slow
def test_kubectl_trusts_the_authority_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for _ in range(2):
        kubeconfig = state / "kubeconfig"
        with program(*wharfinger("control-plane", "--kubeconfig", str(kubeconfig))) as process:
            process.wait_line("control plane ready at https://127.0.0.1:")
            done = attempt("kubectl", "--kubeconfig", str(kubeconfig), "get", "namespace", "default")
            assert done.returncode == 0, done.stderr
            process.process.terminate()
            assert process.wait() == 0
    assert stat.S_IMODE((state / "tls" / "ca.key").stat().st_mode) == 0o600
