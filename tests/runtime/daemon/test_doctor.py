"""Checks of `wharfinger doctor`: programs, folders, a daemon, and a cluster, each with its verdict."""

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import wharfinger
from tests.packages.rendering.test_chart_engine import engine_program
from tests.packages.support.charts import tool
from tests.runtime.daemon.test_daemon import dead_kubeconfig
from tests.runtime.support.world import open_ground
from wharfinger.cluster.api.errors import ForbiddenError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.daemon import doctor
from wharfinger.runtime.daemon.doctor import DaemonAbsentError, Examined, Finding, Verdict, examine
from wharfinger.runtime.daemon.rights import FOR_ACCOUNTS, FOR_ADMISSION, FOR_POOLS, NEEDED

OK, WARNING, FAILED, SKIPPED = Verdict
HELM = str(tool("helm"))
PATH = os.environ["PATH"]
OF_CLUSTER = ("API server", "clock", "rights", "definitions", "registries")


def absent(path: Path) -> str:
    raise DaemonAbsentError(f"no daemon answers on {path}")


async def examined(
    folder: Path, kubeconfig: Path | None = None, helm: str = "", version: str = ""
) -> dict[str, Finding]:
    """Return the findings by subject. If ``version`` is given, a daemon of that version is running."""
    findings: list[Finding] = []
    state = folder / "state"
    examined = Examined(kubeconfig or folder / "none", "", state, state / "debug.sock", helm or HELM)
    await examine(examined, (lambda _path: version) if version else absent, findings.append)
    found = {each.subject: each for each in findings}
    assert len(found) == len(findings)
    return found


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder, make it the only folder on PATH, and return it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "verdict", "says"),
    [
        ("echo v4.3.1+g123", OK, "v4.3.1+g123"),
        ("echo v3.14.0", OK, "v3.14.0"),
        ("echo v3.9.4", FAILED, "is v3.9.4"),
        ("echo what", FAILED, "helm version: what"),
        ("exit 3", FAILED, "helm cannot be run"),
        (None, FAILED, "no 'helm' on PATH"),
    ],
)
async def test_helm_must_exist_and_be_recent_enough(
    tmp_path: Path, programs: Path, body: str | None, verdict: Verdict, says: str
) -> None:
    if body is not None:
        script(programs / "helm", body)
    found = (await examined(tmp_path, helm="helm"))["helm"]
    assert found.verdict is verdict
    assert says in found.message
    assert ("Helm 3.14 or newer" in found.remedy) == (verdict is FAILED)


async def test_missing_programs_of_hooks_are_warnings(tmp_path: Path, programs: Path) -> None:
    script(programs / "bash", "")
    found = await examined(tmp_path)
    assert found["bash"] == Finding("bash", OK, str(programs / "bash"))
    assert (found["jq"].verdict, found["jq"].remedy) == (WARNING, "install jq")


@pytest.mark.slow
async def test_a_missing_or_broken_chart_engine_is_a_warning(tmp_path: Path, programs: Path) -> None:
    assert "make engine" in (await examined(tmp_path))["chart engine"].remedy
    (programs / "wharfinger-engine").symlink_to(engine_program())
    assert (await examined(tmp_path))["chart engine"].verdict is OK
    (programs / "wharfinger-engine").unlink()
    script(programs / "wharfinger-engine", "exit 1")
    assert (await examined(tmp_path))["chart engine"].verdict is WARNING


async def test_the_state_folder_must_be_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    assert (await examined(tmp_path))["state folder"] == Finding(
        "state folder", OK, f"{state} (the daemon will create it)"
    )
    state.write_text("")
    found = (await examined(tmp_path))["state folder"]
    assert (found.verdict, "cannot write to" in found.message) == (FAILED, True)
    state.unlink()
    state.mkdir()
    state.chmod(0o755)  # this mode does not depend on the umask
    assert (await examined(tmp_path))["state folder"].remedy == f"chmod 700 {state}"
    state.chmod(0o700)
    assert (await examined(tmp_path))["state folder"] == Finding("state folder", OK, str(state))
    monkeypatch.setattr(doctor, "LEAST_FREE", 2**80)
    assert (await examined(tmp_path))["state folder"].verdict is WARNING
    monkeypatch.setattr("wharfinger.runtime.daemon.doctor.os.geteuid", lambda: 12345)
    assert "belongs to user" in (await examined(tmp_path))["state folder"].message


async def test_a_missing_or_outdated_daemon_is_a_warning(tmp_path: Path) -> None:
    assert (await examined(tmp_path))["daemon"].verdict is WARNING
    found = (await examined(tmp_path, version="0.0.1"))["daemon"]
    assert (found.verdict, "has version 0.0.1, this program" in found.message) == (WARNING, True)
    assert (await examined(tmp_path, version=wharfinger.__version__))["daemon"].verdict is OK


def test_the_checked_rights_depend_on_the_options(tmp_path: Path) -> None:
    examined = Examined(None, "", tmp_path, tmp_path / "socket", "helm")
    assert examined.rights == NEEDED
    assert replace(examined, admission=True).rights == (*NEEDED, *FOR_ADMISSION)
    every = replace(examined, worker_pools=True, admission=True, require_account=True)
    assert every.rights == (*NEEDED, *FOR_POOLS, *FOR_ADMISSION, *FOR_ACCOUNTS)


async def test_checks_of_the_cluster_are_skipped_without_a_kubeconfig(tmp_path: Path) -> None:
    found = await examined(tmp_path)
    assert (found["kubeconfig"].verdict, "no such file" in found["kubeconfig"].message) == (FAILED, True)
    assert {found[subject].verdict for subject in OF_CLUSTER} == {SKIPPED}


async def test_an_unreachable_server_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CLUSTER_S", 0.01)
    found = await examined(tmp_path, dead_kubeconfig(tmp_path))
    assert [found[subject].verdict for subject in OF_CLUSTER] == [FAILED, *4 * [SKIPPED]]
    assert "kubectl version" in found["API server"].remedy


@pytest.mark.parametrize(
    ("shift_s", "says"),
    [
        (0, "differs from the API server's by less than 30 s"),
        (-3600, r"this machine's clock is (3599|3600) s behind the API server's"),
        (3600, r"this machine's clock is (3599|3600) s ahead of the API server's"),
    ],
)
async def test_a_wrong_clock_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift_s: int, says: str
) -> None:
    monkeypatch.setenv("PATH", PATH)
    async with open_ground(tmp_path) as ground:
        monkeypatch.setattr(doctor, "utc_now", lambda: datetime.now(UTC) + timedelta(seconds=shift_s))
        found = await doctor._clock(ground.client)
        assert found.verdict is (WARNING if shift_s else OK)
        assert re.fullmatch(says, found.message)
        assert ("chrony" in found.remedy) == bool(shift_s)


async def test_the_clock_check_is_skipped_if_the_server_reports_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    async with open_ground(tmp_path) as ground:

        async def refuse(_obj: JsonObject) -> JsonObject:
            raise ForbiddenError(403, "Forbidden", "no")

        monkeypatch.setattr(ground.client, "create", refuse)
        assert (await doctor._clock(ground.client)).verdict is SKIPPED


async def test_an_unreachable_registry_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PATH)
    async with open_ground(tmp_path, with_password=True) as ground:
        assert (await doctor._registries(ground.client)).message == "no PackageRepository names a registry"
        await ground.client.create(repository("a", str(ground.address)))
        found = await doctor._registries(ground.client)
        assert found == Finding("registries", OK, f"http://{ground.address}: answering")
        await ground.client.create(repository("b", "127.0.0.1:9"))
        found = await doctor._registries(ground.client)
        assert (found.verdict, "127.0.0.1:9" in found.message) == (WARNING, True)
        assert "spec.registry.ca" in found.remedy
        monkeypatch.setattr(doctor, "REGISTRY_S", 0.0)
        assert "no answer within 0 s" in (await doctor._registries(ground.client)).message


def repository(name: str, registry: str) -> JsonObject:
    """Return a PackageRepository for a registry without TLS."""
    spec: JsonObject = {"registry": {"repo": f"{registry}/packages", "scheme": "HTTP"}}
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": name},
        "spec": spec,
    }
