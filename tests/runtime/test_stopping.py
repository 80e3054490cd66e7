"""A stop interrupts waits: the daemon gets SIGTERM while a package waits for the cluster, and is then started again."""

import json
import os
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from tests.programs import run
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application, embedded_daemon, held
from tests.runtime.tasks.test_hook_runs import bash, hooked

BOATS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.example.test
  annotations: {wharfinger.dev/never-established: "true"}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
MIGRATE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    metadata: {annotations: {wharfinger.dev/never-ready: "true"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/migrate:1"}]}
"""
WAITS = {
    "templates/boats.yaml": (
        BOATS,
        "CustomResourceDefinition.apiextensions.k8s.io boats.example.test: the initial names have been accepted",
        "the API server to establish boats.example.test",
    ),
    "templates/migrate.yaml": (MIGRATE, "", "hook Job migrate"),
}


def revisions(kubeconfig: Path) -> list[tuple[str, str]]:
    env = {"KUBECONFIG": str(kubeconfig)}
    told = json.loads(run("helm", "history", "app", "--namespace=default", "--output=json", env=env))
    return [(one["status"], one["description"]) for one in told]


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("file", WAITS)
def test_a_stop_interrupts_waiting_for_the_cluster(tmp_path: Path, file: str) -> None:
    """If the wait were not interrupted, the daemon would need the whole grace period of 30 s, and would then report "stopped
    before all running tasks had ended".
    """
    text, shown, waited_for = WAITS[file]
    write(chart(tmp_path / "packages" / "fleet", "fleet", "1.0.0"), {file: text})
    kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
    local = ("--local-packages", str(tmp_path))
    with embedded_daemon(tmp_path, *local) as running:
        running.wait_line("ready:")
        # Without this label, an Application may not apply CRDs.
        kubectl("label", "namespace/default", "wharfinger.dev/cluster-scope=allowed")
        kubectl.apply(tmp_path / "app.yaml", application("fleet", f"{{folder: {{path: '{tmp_path}/packages'}}}}"))
        if shown:
            kubectl.wait("application/app", f'{{.status.conditions[?(@.type=="Reconciling")].message}}={shown}')
        else:
            kubectl("wait", "--for=create", "job/migrate", "--timeout=50s")
        running.process.terminate()
        assert running.wait() == 0, running.lines
    assert running.lines[-1].endswith("stopped")
    with embedded_daemon(tmp_path, *local) as again:
        again.wait_line("ready:")
        ((status, description), *_) = revisions(kubectl.kubeconfig)
        assert status == "failed"
        assert description.startswith(f"Install interrupted while waiting for {waited_for}: ")
        if shown:
            kubectl("annotate", "crd", "boats.example.test", "wharfinger.dev/never-established-")
            kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
            assert [status for status, _ in revisions(kubectl.kubeconfig)] == ["failed", "deployed"]
        again.process.terminate()
        assert again.wait() == 0, again.lines


@pytest.mark.unmeasured
def test_a_task_finished_during_a_stop_is_in_the_status(tmp_path: Path) -> None:
    finish_during_a_stop(tmp_path)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("time", range(20))
def test_a_task_finished_during_a_stop_is_always_in_the_status(tmp_path: Path, time: int) -> None:
    finish_during_a_stop(tmp_path)


def finish_during_a_stop(tmp_path: Path) -> None:
    """Send SIGTERM to a daemon while a hook of an install runs. Then let the hook end, and check that the install is complete."""
    os.mkfifo(tmp_path / "held")
    hold = f'echo $$ >"{tmp_path}/held"\nwhile [ ! -e "{tmp_path}/go" ]; do sleep 0.05; done\n'
    hooked(tmp_path / "packages" / "hooked", {"hold.sh": bash("{configVersion: v1, afterHelm: 1}", hold)})
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as running:
            running.wait_line("ready:")
            kubectl.apply(tmp_path / "app.yaml", application("hooked", f"{{folder: {{path: '{tmp_path}/packages'}}}}"))
            held(tmp_path)
            running.process.terminate()
            running.wait_line("stopping")
            (tmp_path / "go").touch()
            assert running.wait() == 0, running.lines
        applied = kubectl.value("application/app", '.status.conditions[?(@.type=="ConfigurationApplied")].status')
        assert (applied, kubectl.value("application/app", ".status.release.revision")) == ("True", "1")
