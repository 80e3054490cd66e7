"""The embedded control plane in a real child process with real clients, and the ways in which the child may end."""

import os
import select
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.cluster.support.client_contract import config_map, key
from tests.programs import PATIENCE_S, program
from wharfinger.cluster import embedded
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.embedded import EmbeddedError, open_embedded
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage
from wharfinger.kube.resource import name_of
from wharfinger.process.ledger import ProcessLedger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ProcessLedger]:
    with open_ledger(tmp_path / "journal.db") as opened:
        yield opened
        assert opened.entries() == ()


@asynccontextmanager
async def client_of(kubeconfig: Path) -> AsyncIterator[HttpClusterClient]:
    async with open_client(await trio.to_thread.run_sync(load_connection, kubeconfig)) as client:
        yield client


def pid_of(ledger: ProcessLedger) -> int:
    """Return the process id of the child."""
    [entry] = ledger.entries()
    return entry.pid


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_applied_objects_and_the_kubeconfig_survive_a_restart(tmp_path: Path, ledger: ProcessLedger) -> None:
    folder = tmp_path / "state" / "embedded"
    async with open_embedded(folder, ledger) as kubeconfig, client_of(kubeconfig) as client:
        assert kubeconfig == folder / "kubeconfig"
        kept = await client.create(config_map("kept"))
        before = kubeconfig.read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in folder.iterdir()}
    for left in ("data.db-wal", "data.db-shm"):  # these files remain if the child was killed
        modes.pop(left, None)
    assert modes == {
        "data.db": 0o600,
        "kubeconfig": 0o600,
        "tls": 0o700,
        "token": 0o600,
    }

    async with open_embedded(folder, ledger) as kubeconfig, client_of(kubeconfig) as client:
        assert kubeconfig.read_bytes() == before
        assert await client.get(key("kept")) == kept


@pytest.mark.slow
async def test_a_port_in_use_by_another_process_is_replaced(tmp_path: Path, ledger: ProcessLedger) -> None:
    async with open_embedded(tmp_path, ledger) as kubeconfig:
        before = load_connection(kubeconfig).server
    with socket.create_server(("127.0.0.1", int(before.rpartition(":")[2]))):
        async with open_embedded(tmp_path, ledger) as kubeconfig, client_of(kubeconfig) as client:
            assert load_connection(kubeconfig).server != before
            assert name_of(await client.create(config_map("a"))) == "a"


@pytest.mark.slow
async def test_an_invalid_kubeconfig_is_written_again(tmp_path: Path, ledger: ProcessLedger) -> None:
    (tmp_path / "kubeconfig").write_text("nonsense")
    async with open_embedded(tmp_path, ledger) as kubeconfig:
        assert load_connection(kubeconfig).server.startswith("https://127.0.0.1:")


@pytest.mark.slow
async def test_the_block_is_cancelled_when_the_child_dies(tmp_path: Path, ledger: ProcessLedger) -> None:
    with pytest.raises(
        EmbeddedError, match=r"^the embedded control plane died: killed by signal 9; the process wrote nothing"
    ):
        async with open_embedded(tmp_path, ledger):
            os.kill(pid_of(ledger), signal.SIGKILL)
            await trio.sleep_forever()


@pytest.mark.slow
async def test_the_death_of_the_child_is_reported_rather_than_its_consequences(
    tmp_path: Path, ledger: ProcessLedger
) -> None:
    with pytest.raises(EmbeddedError, match="died: exit status 0") as caught:
        async with open_embedded(tmp_path, ledger):
            os.kill(pid_of(ledger), signal.SIGTERM)
            try:
                await trio.sleep_forever()
            finally:
                raise RuntimeError("no connection")
    assert isinstance(caught.value.__cause__, ExceptionGroup)


@pytest.mark.slow
async def test_an_exception_of_the_block_is_raised(tmp_path: Path, ledger: ProcessLedger) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with open_embedded(tmp_path, ledger):
            raise RuntimeError("mine")
    assert caught.group_contains(RuntimeError, match="mine")
    assert not caught.group_contains(EmbeddedError)


@pytest.mark.slow
async def test_a_child_that_cannot_start_reports_the_reason(tmp_path: Path, ledger: ProcessLedger) -> None:
    (tmp_path / "data.db").write_bytes(b"no database" * 100)
    with pytest.raises(EmbeddedError) as caught:
        async with open_embedded(tmp_path, ledger):
            pytest.fail("it came up")
    said = str(caught.value)
    assert said.startswith("the embedded control plane did not start: exit status 1; error: the data file ")
    assert "is damaged (file is not a database); restore a copy of it, or move it" in said


async def test_a_child_that_starts_too_slowly_is_ended(
    tmp_path: Path, ledger: ProcessLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "START_S", 0.0)
    with pytest.raises(EmbeddedError, match=r"was not ready within 0 s: .*check the load of this machine"):
        async with open_embedded(tmp_path, ledger):
            pytest.fail("it came up")


async def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path, ledger: ProcessLedger) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        async with open_embedded(tmp_path / "file" / "embedded", ledger):
            pytest.fail("it came up")


@pytest.mark.slow
async def test_service_manager_variables_are_not_passed_to_the_child(tmp_path: Path, ledger: ProcessLedger) -> None:
    environ = {**os.environ, "NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "LISTEN_FDS": "1", "HARBOUR": "x"}
    async with open_embedded(tmp_path, ledger, environ=environ):
        env = Path(f"/proc/{pid_of(ledger)}/environ").read_bytes().split(b"\0")
    names = {entry.partition(b"=")[0] for entry in env}
    assert b"HARBOUR" in names
    assert names.isdisjoint({b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"LISTEN_FDS"})


def test_the_child_of_a_killed_parent_ends_by_itself(tmp_path: Path) -> None:
    with program(sys.executable, "-m", "tests.cluster.support.embedded_parent", str(tmp_path)) as parent:
        pid = int(parent.wait_line(""))
        child = os.pidfd_open(pid)
        parent.process.kill()
        ended, _, _ = select.select([child], [], [], PATIENCE_S)
        os.close(child)
    assert ended
    with open_sqlite_storage(tmp_path / "embedded" / "data.db") as storage:
        assert storage.revision > 1
