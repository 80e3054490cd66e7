"""Leadership: the identity of a daemon, a standby that takes over, and a leader that lost its Lease. Only one daemon leads."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.programs import run
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.world import one_error
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.lease.lease import LeaseLostError
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.controllers.state_dir import StateDirError
from wharfinger.runtime.daemon import leadership
from wharfinger.runtime.daemon.leadership import IDENTITY_FILE, LEASE, MAX_IDENTITY, identity_of, open_leadership
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

LEASES = ObjectKey(
    ResourceType("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True), SYSTEM_NAMESPACE, LEASE
)


def clock() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open_cluster() -> AsyncIterator[ClusterClient]:
    """Run a control plane in this process."""
    with one_error():
        async with (
            open_control_plane() as plane,
            open_client(Connection(LOCAL, bearer("")), transport=plane.transport()) as client,
        ):
            yield client


# -- identity


def test_the_identity_of_a_state_folder_never_changes(tmp_path: Path) -> None:
    identity = identity_of(tmp_path)
    host, _, number = identity.rpartition("_")
    assert (bool(host), len(number)) == (True, 36)
    assert identity_of(tmp_path) == identity
    assert (tmp_path / IDENTITY_FILE).read_text() == f"{identity}\n"
    assert [path.name for path in tmp_path.iterdir()] == [IDENTITY_FILE]
    other = tmp_path / "other"
    other.mkdir()
    assert identity_of(other) != identity


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_incomplete_identity_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / IDENTITY_FILE).write_bytes(content)
    assert identity_of(tmp_path) == (tmp_path / IDENTITY_FILE).read_text().strip()


def test_any_content_of_the_file_fits_into_a_lease(tmp_path: Path) -> None:
    (tmp_path / IDENTITY_FILE).write_bytes(b"\xff" * 10_000)
    assert len(identity_of(tmp_path)) == MAX_IDENTITY


def test_an_unusable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / IDENTITY_FILE).mkdir()
    with pytest.raises(StateDirError, match=r"identity: .*; check the disk and the owner of the state folder"):
        identity_of(tmp_path)


# -- leadership


class NotYet(LimitedClient):
    """A client that fails to create a namespace a few times."""

    def __init__(self, client: ClusterClient, failures: int) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.failures = failures

    async def create(self, obj: JsonObject) -> JsonObject:
        if obj["kind"] == "Namespace" and self.failures:
            self.failures -= 1
            raise UnreachableError("the server is away")
        return await super().create(obj)


async def test_the_creation_of_the_namespace_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "RETRY_S", 0.01)
    async with open_cluster() as client:
        patient = NotYet(client, 2)
        for fence in (1, 2):
            async with open_leadership(patient, tmp_path, clock) as lease:
                assert (lease.identity, lease.fence) == (identity_of(tmp_path), fence)
        assert patient.failures == 0


async def test_a_second_daemon_waits_for_the_end_of_the_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    order: list[str] = []

    async def second(client: ClusterClient) -> None:
        async with open_leadership(client, two, clock) as lease:
            order.append("second")
            assert lease.fence == 2

    async with open_cluster() as client, trio.open_nursery() as nursery, open_leadership(client, one, clock):
        nursery.start_soon(second, client)
        with trio.fail_after(60):
            while "not acquired yet" not in caplog.text:
                await trio.testing.wait_all_tasks_blocked(0.01)
        order.append("first")
    assert order == ["first", "second"]
    assert f"on standby: Lease {SYSTEM_NAMESPACE}/{LEASE}: not acquired yet: {identity_of(one)} holds it" in caplog.text


@pytest.mark.slow
async def test_a_lost_lease_ends_the_leadership(tmp_path: Path) -> None:
    async with open_cluster() as client:
        with pytest.raises(LeaseLostError, match="does not hold it any more"):
            async with open_leadership(client, tmp_path, clock):
                await client.merge_patch(LEASES, {"spec": {"holderIdentity": "somebody else"}})
                with trio.fail_after(60):
                    await trio.sleep_forever()
        assert find_str(await client.get(LEASES), "spec", "holderIdentity") == "somebody else"


# -- as processes


def kubectl(kubeconfig: Path, *arguments: str) -> str:
    return run("kubectl", *arguments, env={"KUBECONFIG": str(kubeconfig)})


@pytest.mark.slow
def test_two_daemons_of_one_cluster_work_one_after_the_other(tmp_path: Path) -> None:
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path / "one", kubeconfig) as first:
        first.wait_line("ready:")
        with daemon(tmp_path / "two", kubeconfig) as second:
            waiting = second.wait_line("on standby: ")
            assert (tmp_path / "one" / "state" / IDENTITY_FILE).read_text().strip() in waiting
            first.process.terminate()
            assert first.wait() == 0
            second.wait_line("leaseTransitions: 2")
            second.wait_line("ready:")
        spec = json.loads(kubectl(kubeconfig, "get", "lease", "-n", SYSTEM_NAMESPACE, LEASE, "-o=json"))["spec"]
        assert spec["leaseTransitions"] == 2


@pytest.mark.slow
def test_a_standby_can_be_stopped(tmp_path: Path) -> None:
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path / "one", kubeconfig) as first:
        first.wait_line("ready:")
        with daemon(tmp_path / "two", kubeconfig) as second:
            second.wait_line("on standby: ")
            second.process.terminate()
            assert second.wait() == 0


@pytest.mark.slow
def test_a_daemon_that_lost_its_lease_ends_with_an_error(tmp_path: Path) -> None:
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig) as running:
        running.wait_line("ready:")
        taken = '{"spec": {"holderIdentity": "somebody else"}}'
        kubectl(kubeconfig, "patch", "lease", "-n", SYSTEM_NAMESPACE, LEASE, "--type=merge", f"--patch={taken}")
        assert running.wait() == 1
        assert running.lines[-1].startswith(f"error: Lease {SYSTEM_NAMESPACE}/{LEASE}: ")
        assert "somebody else" in running.lines[-1]
        assert "Traceback" not in "".join(running.lines)
