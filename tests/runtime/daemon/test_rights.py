"""The rights of a daemon: it checks the rights that it needs, lists the missing ones, and waits for them. It needs no other
rights.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.packages.support.charts import chart
from tests.programs import ROOT, Program, attempt, run
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.daemon.rights import (
    AGAIN_S,
    FOR_ACCOUNTS,
    FOR_ADMISSION,
    FOR_ADMISSION_SERVICE,
    FOR_POOLS,
    NEEDED,
    await_rights,
    cluster_role,
    listed,
    missing_rights,
    rights_of_admission,
    watch_rights,
)


class Judge(LimitedClient):
    """A client whose user has exactly the rights in ``allowed``, by verb and resource."""

    def __init__(self, client: ClusterClient, allowed: set[str]) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.allowed = allowed
        self.asked: list[str] = []
        self.error: Exception | None = None

    async def create(self, obj: JsonObject) -> JsonObject:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        about = find(obj, "spec", "resourceAttributes")
        subresource = find_str(about, "subresource")
        asked = f"{find_str(about, 'verb')} {find_str(about, 'resource')}" + (f"/{subresource}" if subresource else "")
        self.asked.append(asked)
        return {**obj, "status": {"allowed": asked in self.allowed}}


ALL = {f"{verb} {right.resource}" for right in NEEDED for verb in right.verbs}


@asynccontextmanager
async def cluster() -> AsyncIterator[ClusterClient]:
    async with (
        open_control_plane() as plane,
        open_client(Connection(LOCAL, bearer("")), transport=plane.transport()) as client,
    ):
        yield client


async def test_an_administrators_rights_are_checked_with_one_request(autojump_clock: MockClock) -> None:
    async with cluster() as client:
        assert await missing_rights(client) == ()
        judge = Judge(client, {"* *"})
        assert await missing_rights(judge) == ()
        assert judge.asked == ["* *"]


async def test_each_right_is_checked_and_each_missing_one_is_listed(autojump_clock: MockClock) -> None:
    async with cluster() as client:
        assert await missing_rights(Judge(client, ALL)) == ()
        lacking = {"create leases", "patch customresourcedefinitions", "create customresourcedefinitions"}
        judge = Judge(client, ALL - {*lacking, "patch modules/status"})
        missing = await missing_rights(judge)
        assert set(judge.asked) == {*ALL, "* *"}
        assert [str(one) for one in missing] == [
            "create customresourcedefinitions.apiextensions.k8s.io",
            "patch customresourcedefinitions.apiextensions.k8s.io",
            "create leases.coordination.k8s.io in wharfinger-system",
            "patch modules.wharfinger.dev/status",
        ]
        assert listed(missing) == (
            "create, patch customresourcedefinitions.apiextensions.k8s.io (to install and update its own definitions and "
            "those of packages); create leases.coordination.k8s.io in wharfinger-system (to ensure that only one "
            "daemon works at a time); "
            "patch modules.wharfinger.dev/status (to report the status of Modules)"
        )


async def test_missing_rights_are_logged_once_and_checked_again_with_backoff(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    async with cluster() as client:
        judge = Judge(client, ALL - {"create leases"})
        with trio.move_on_after(AGAIN_S / 2):
            await await_rights(judge, told.append)
        assert len(caplog.messages) == 1
        assert (
            "on standby, because the daemon lacks rights: create leases.coordination.k8s.io in wharfinger-system"
            in caplog.text
        )
        assert "give the daemon's user the ClusterRole of docs/service.md" in caplog.text
        assert judge.asked.count("* *") < 40
        judge.allowed = ALL
        await await_rights(judge, told.append)
        assert told[-1] == ""


async def test_an_unreachable_server_is_queried_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster() as client:
        judge = Judge(client, {"* *"})
        told: list[str] = []
        judge.error = UnreachableError("the server is away")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(await_rights, judge, told.append)
            await trio.sleep(50)
            assert len(caplog.messages) == 1
            assert "the daemon's rights cannot be checked: the server is away" in caplog.text
            judge.error = None


async def test_rights_removed_later_are_logged_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "wharfinger.runtime.daemon.rights")
    async with cluster() as client, trio.open_nursery() as nursery:
        judge = Judge(client, ALL)
        nursery.start_soon(watch_rights, judge)
        await trio.sleep(1000)
        assert caplog.messages == []
        judge.allowed = ALL - {"patch applications/status"}
        await trio.sleep(2000)
        (message,) = caplog.messages
        assert (
            "the daemon lacks rights that it had when it started: patch applications.wharfinger.dev/status" in message
        )
        judge.allowed = ALL
        await trio.sleep(1000)
        assert caplog.messages[1:] == ["the daemon again has all rights that it needs"]
        nursery.cancel_scope.cancel()


def test_the_document_shows_this_cluster_role() -> None:
    text = (ROOT / "docs" / "service.md").read_text()
    shown = [read_yaml(block, what="docs/service.md") for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert cluster_role("wharfinger") in shown


def test_the_document_shows_the_rights_for_pools() -> None:
    text = (ROOT / "docs" / "pools.md").read_text()
    shown = [read_yaml(block, what="docs/pools.md") for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert cluster_role("wharfinger-worker-pools", FOR_POOLS) in shown


def test_the_document_shows_the_right_to_impersonate() -> None:
    text = (ROOT / "docs" / "tenancy.md").read_text()
    shown = [read_yaml(block, what="docs/tenancy.md") for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert cluster_role("wharfinger-accounts", FOR_ACCOUNTS) in shown


def test_the_document_shows_the_right_for_admission() -> None:
    text = (ROOT / "docs" / "admission.md").read_text()
    shown = [read_yaml(block, what="docs/admission.md") for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert cluster_role("wharfinger-admission", FOR_ADMISSION) in shown
    of_service = cluster_role("", FOR_ADMISSION_SERVICE)["rules"]
    assert any(isinstance(each, dict) and each["kind"] == "Role" and each["rules"] == of_service for each in shown)


def test_the_rights_for_a_service_are_in_its_namespace() -> None:
    assert rights_of_admission(None, "") == rights_of_admission(("system", "hook"), "") == FOR_ADMISSION
    (more,) = rights_of_admission(("system", "hook"), "10.0.0.7")[len(FOR_ADMISSION) :]
    assert more == replace(FOR_ADMISSION_SERVICE[0], namespace="system")


async def test_the_rights_for_pools_are_checked_only_if_needed(autojump_clock: MockClock) -> None:
    async with cluster() as client:
        judge = Judge(client, ALL)
        assert await missing_rights(judge) == ()
        found = await missing_rights(judge, (*NEEDED, *FOR_POOLS))
        assert "create pods" in set(map(str, found))
        assert len(found) == sum(len(right.verbs) for right in FOR_POOLS)


# -- as processes


def as_user(kubectl: Kubectl, folder: Path, name: str, role: JsonObject) -> Path:
    """Create a service account with a ClusterRole, and return its kubeconfig."""
    made = {
        "account.json": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "default"},
        },
        "role.json": role,
        "binding.json": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    }
    for file, obj in made.items():
        kubectl.apply(folder / f"{name}-{file}", json.dumps(obj))
    token = kubectl("create", "token", name).strip()
    config = read_yaml(kubectl.kubeconfig.read_bytes(), what="kubeconfig")
    assert isinstance(config, dict)
    (user,) = find_list(config, "users")
    user_name = find_str(user, "name")
    path = folder / f"{name}.kubeconfig"
    path.write_text(json.dumps({**config, "users": [{"name": user_name, "user": {"token": token}}]}))
    return path


def without_definitions(name: str) -> JsonObject:
    """Return a ClusterRole without the right to write CustomResourceDefinitions."""
    role = cluster_role(name)
    rules: list[JsonObject] = [
        {**rule, "verbs": ["get", "list", "watch"]} if "customresourcedefinitions" in str(rule) else rule
        for rule in find_list(role, "rules")
        if isinstance(rule, dict)
    ]
    return {**role, "rules": [*rules]}


def and_config_maps(name: str) -> JsonObject:
    """Return a ClusterRole with the rights of a daemon, and with the rights for the objects in the test's chart."""
    role = cluster_role(name)
    extra: JsonObject = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "delete"]}
    return {**role, "rules": [*find_list(role, "rules"), extra]}


@contextmanager
def local_daemon(folder: Path, name: str, kubeconfig: Path) -> Iterator[Program]:
    with daemon(folder / name, kubeconfig, "--local-packages", str(folder)) as running:
        yield running


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_daemon_without_rights_leaves_the_lease_to_one_that_has_them(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "web", "web", "1.0.0")
    with control_plane(tmp_path) as admin:
        kubectl = Kubectl(admin)
        weak = as_user(kubectl, tmp_path, "weak", without_definitions("weak"))
        strong = as_user(kubectl, tmp_path, "strong", and_config_maps("strong"))
        with local_daemon(tmp_path, "weak", weak) as waits:
            said = waits.wait_line("lacks rights")
            assert "create, patch customresourcedefinitions.apiextensions.k8s.io (to install" in said
            assert "leases" not in said
            assert attempt("kubectl", "--kubeconfig", str(admin), "get", "lease", "-A", "-o", "name").stdout == ""
            socket = str(tmp_path / "weak" / "state" / "run" / "debug.sock")
            asked = run("curl", "--silent", "--unix-socket", socket, "http://daemon/readyz")
            assert asked.startswith("not ready: lacks rights: create, patch customresourcedefinitions")
            with local_daemon(tmp_path, "strong", strong) as works:
                works.wait_line("ready:")
                manifest = (
                    "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
                    f"spec: {{folder: {{path: '{tmp_path}/packages'}}}}\n---\n"
                    "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\n"
                    "metadata: {name: shop, namespace: default}\n"
                    "spec: {packageName: web, packageVersion: 1.0.0}\n"
                )
                kubectl.apply(tmp_path / "application.yaml", manifest)
                kubectl("wait", "--for=condition=Ready", "applications.wharfinger.dev/shop", "--timeout=50s")
                kubectl("delete", "applications.wharfinger.dev/shop", "--timeout=50s")
                assert not any("orbidden" in line for line in works.lines), works.lines
                works.process.terminate()
                assert works.wait() == 0
                assert not any("orbidden" in line for line in works.lines), works.lines
            waits.process.terminate()
            assert waits.wait() == 0
            assert sum("lacks rights" in line for line in waits.lines) == 1
