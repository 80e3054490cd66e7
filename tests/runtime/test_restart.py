"""Daemons that are killed with `kill -9` at the worst moments. The next daemon continues their work."""

import os
import random
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import run
from tests.registry_server import open_registry_server
from tests.runtime.core.test_runtime import SLOW_CONFIG
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import (
    Kubectl,
    application,
    children,
    embedded_daemon,
    held,
    held_hook,
    kill,
    slow_registry,
    watched,
)
from tests.runtime.tasks.test_hook_runs import bash, hooked
from tests.runtime.tasks.test_start_tasks import notes, noting
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package

pytestmark = pytest.mark.unmeasured

STATE = "secret/wharfinger.app.app"


async def push(folder: Path, name: str, address: RegistryAddress) -> None:
    async with open_registry(address, scheme="http") as registry:
        await push_package(await load_package(folder, name), registry, f"packages/{name}", "1.0.0")


def registry_spec(address: RegistryAddress) -> str:
    return f"{{registry: {{repo: '{address}/packages', scheme: HTTP}}}}"


def folder_spec(folder: Path) -> str:
    return f"{{folder: {{path: '{folder}'}}}}"


@pytest.mark.slow
async def test_a_download_interrupted_by_a_kill_starts_from_the_beginning(tmp_path: Path) -> None:
    """The next daemon does not use the first half of the blob, and downloads the whole blob."""
    noise = random.Random(3).randbytes(512 * 1024).hex()  # noqa: S311 - compresses to half, which is still a lot
    state = tmp_path / "state"
    async with open_registry_server(tmp_path) as real:
        await push(chart(tmp_path / "web", "web", "1.0.0", {"files/noise": noise}), "web", real)
        with slow_registry(real, 100_000) as stall, control_plane(tmp_path) as kubeconfig:
            kubectl = Kubectl(kubeconfig)
            with daemon(tmp_path, kubeconfig) as first:
                first.wait_line("ready:")
                kubectl.apply(tmp_path / "manifest", application("web", registry_spec(stall.address)))
                assert stall.reached.wait(50)
                kill(first)
            assert list((state / "deployed").iterdir()) == []
            assert list((state / "store" / "trees").iterdir()) == []
            assert list((state / "store" / "tmp").iterdir()) != []
            stall.go_on.set()
            with daemon(tmp_path, kubeconfig) as again:
                again.wait_line("default/app: Ready")
                kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
                assert list((state / "store" / "tmp").iterdir()) == []
                assert kubectl.value("configmap/app", ".data.text") == "none"


@pytest.mark.slow
def test_a_startup_hook_interrupted_by_a_kill_runs_again(tmp_path: Path) -> None:
    """The first hook is recorded as done, and does not run again. The second hook was running: the next daemon kills it and its
    descendants, and then runs it again.
    """
    os.mkfifo(tmp_path / "held")
    hooks = {
        "a.sh": noting(tmp_path, "{configVersion: v1, onStartup: 1}", "first"),
        "b.sh": held_hook(tmp_path, "{configVersion: v1, onStartup: 2}", "second"),
    }
    hooked(tmp_path / "packages" / "hooked", hooks)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as first:
            first.wait_line("ready:")
            kubectl.apply(tmp_path / "manifest", application("hooked", folder_spec(tmp_path / "packages")))
            hook, below = held(tmp_path)
            with watched(hook) as hook_process, watched(below) as child_process:
                kill(first)
                assert not hook_process.ended()
                assert not child_process.ended()
                (tmp_path / "go").touch()
                with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as again:
                    again.wait_line("that an earlier daemon left")
                    assert hook_process.ended()
                    assert child_process.ended()
                    again.wait_line("default/app: Ready")
                    assert notes(tmp_path) == ["first", "second", "second"]


@pytest.mark.slow
def test_a_daemon_killed_before_ready_makes_no_new_revision(tmp_path: Path) -> None:
    """The next daemon makes no new revision: it sends the objects of revision 1 once more, and waits until they are ready."""
    chart(tmp_path / "packages" / "web", "web", "1.0.0", {"templates/slow.yaml": SLOW_CONFIG})
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as first:
            first.wait_line("ready:")
            kubectl.apply(tmp_path / "manifest", application("web", folder_spec(tmp_path / "packages")))
            kubectl.wait("application/app", "{.status.release.revision}=1")
            kubectl.wait("application/app", "{.status.conditions[0].reason}=NotReady")
            kill(first)
        kubectl("annotate", "deployment/slow", "wharfinger.dev/never-ready-")
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as again:
            # The second apply sets the annotation again, so the daemon waits for the Deployment.
            kubectl.wait("deployment/slow", r"{.metadata.annotations.wharfinger\.dev/never-ready}=true")
            kubectl("annotate", "deployment,replicaset", "--all", "wharfinger.dev/never-ready-")
            again.wait_line("default/app: Ready")
        listed = run("helm", "list", "--namespace=default", "--output=json", env={"KUBECONFIG": str(kubeconfig)})
        assert '"revision":"1"' in listed


def assert_nothing_is_left(kubectl: Kubectl, state: Path) -> None:
    left = kubectl("get", "configmaps,secrets,applications", "--namespace=default", "--output=name").split()
    assert left == ["configmap/kube-root-ca.crt"]
    assert list((state / "deployed").iterdir()) == []
    assert list((state / "store" / "trees").iterdir()) == []


@pytest.mark.slow
def test_an_uninstall_interrupted_by_a_kill_is_continued(tmp_path: Path) -> None:
    hooks = {
        "before.sh": noting(tmp_path, "{configVersion: v1, beforeDeleteHelm: 1}", "before"),
        "after.sh": noting(tmp_path, "{configVersion: v1, afterDeleteHelm: 1}", "after"),
    }
    hooked(tmp_path / "packages" / "hooked", hooks)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as first:
            first.wait_line("ready:")
            kubectl.apply(tmp_path / "manifest", application("hooked", folder_spec(tmp_path / "packages")))
            first.wait_line("default/app: Ready")
            kubectl(
                "patch", "configmap/out", "--type=merge", '--patch={"metadata":{"finalizers":["example.com/hold"]}}'
            )
            kubectl("delete", "application/app", "--wait=false")
            kubectl.wait("configmap/out", "{.metadata.deletionTimestamp}")
            kill(first)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as again:
            again.wait_line("default/app: Removing")
            kubectl("patch", "configmap/out", "--type=merge", '--patch={"metadata":{"finalizers":null}}')
            kubectl("wait", "--for=delete", "application/app", "--timeout=50s")
            assert notes(tmp_path) == ["before", "after"]  # a step that is complete in the journal is not repeated
            assert_nothing_is_left(kubectl, tmp_path / "state")


@pytest.mark.slow
def test_the_last_hook_of_an_uninstall_runs_again_after_a_kill(tmp_path: Path) -> None:
    """The release is already deleted, but the afterDeleteHelm hook was interrupted, so it runs once more."""
    os.mkfifo(tmp_path / "held")
    hooked(
        tmp_path / "packages" / "hooked",
        {"after.sh": held_hook(tmp_path, "{configVersion: v1, afterDeleteHelm: 1}", "after")},
    )
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as first:
            first.wait_line("ready:")
            kubectl.apply(tmp_path / "manifest", application("hooked", folder_spec(tmp_path / "packages")))
            first.wait_line("default/app: Ready")
            kubectl("delete", "application/app", "--wait=false")
            hook, _below = held(tmp_path)
            with watched(hook) as hook_process:
                kill(first)
                (tmp_path / "go").touch()
                with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as again:
                    again.wait_line("that an earlier daemon left")
                    assert hook_process.ended()
                    kubectl("wait", "--for=delete", "application/app", "--timeout=50s")
                    assert notes(tmp_path) == ["after", "after"]
                    assert_nothing_is_left(kubectl, tmp_path / "state")


@pytest.mark.slow
async def test_a_killed_embedded_daemon_restarts_without_its_registry(tmp_path: Path) -> None:
    """The new daemon still has the cluster, the downloaded packages, and the values that hooks have patched."""
    patching = bash(
        "{configVersion: v1, onStartup: 1}",
        f'echo once >>"{tmp_path}/notes"\n'
        'echo \'{"op":"add","path":"/hooked/seen","value":3}\' >"$VALUES_JSON_PATCH_PATH"',
    )
    kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
    with embedded_daemon(tmp_path) as first:
        first.wait_line("ready:")
        async with open_registry_server(tmp_path) as address:
            await push(hooked(tmp_path / "hooked", {"a.sh": patching}), "hooked", address)
            kubectl.apply(tmp_path / "manifest", application("hooked", registry_spec(address)))
            first.wait_line("default/app: Ready")
            kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
        (plane,) = children(first.process.pid, "control-plane")
        with watched(plane) as control_plane_process:
            kill(first)
            control_plane_process.wait_ended()
    with embedded_daemon(tmp_path) as again:
        again.wait_line("default/app: Ready")
        kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
        assert kubectl.value("configmap/out", ".data.seen") == "3"
        assert kubectl.value("application/app", ".status.release.revision") == "1"
        assert notes(tmp_path) == ["once"]
        # A new reconciliation asks the registry again, and reports that the registry cannot be reached.
        kubectl("annotate", "application/app", "wharfinger.dev/reconcile-requested-at=now")
        kubectl.wait("application/app", "{.status.conditions[0].reason}=RegistryFailed")
        again.process.terminate()
        assert again.wait() == 0
