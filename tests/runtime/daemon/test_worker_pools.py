"""Pools of pods in a real daemon, with kubectl: claims before and after a restart, and hooks that run in pods."""

import signal
from pathlib import Path

import pytest

from tests.programs import attempt, program, run, wharfinger
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.runtime.paths import default_socket

pytestmark = pytest.mark.unmeasured

POOL = """
apiVersion: wharfinger.dev/v1alpha1
kind: WorkerPool
metadata: {name: workers, namespace: default}
spec:
  size: 2
  max: 6
  template:
    spec:
      containers: [{name: main, image: "busybox:1"}]
"""
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: default, labels: {for: hook}}}"
BOUND = "--for=jsonpath={.status.phase}=Bound"


MAPS = "configVersion: v1\nkubernetes: [{kind: ConfigMap, labelSelector: {matchLabels: {for: hook}}}]"
SAY = 'echo "has ${KUBECONFIG:-no kubeconfig} in $(pwd)."'


def claim(name: str, pool: str = "workers") -> str:
    return (
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: WorkerClaim\nmetadata: {{name: {name}, namespace: default}}\n"
        f"spec: {{pool: {pool}, labels: {{for: {name}}}}}\n"
    )


@pytest.mark.slow
def test_claims_get_pods_before_and_after_a_restart(tmp_path: Path) -> None:
    socket = str(default_socket(tmp_path / "state"))
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--worker-pools") as first:
            first.wait_line("ready:")
            kubectl.apply(tmp_path / "pool.yaml", POOL)
            kubectl("wait", "workerpool/workers", "--for=condition=Ready", "--timeout=60s")
            kubectl.apply(tmp_path / "one.yaml", claim("one"))
            kubectl("wait", "workerclaim/one", BOUND, "--timeout=60s")
            pod = kubectl.value("workerclaim/one", ".status.podName")
            assert kubectl.value(f"pod/{pod}", ".metadata.labels.for") == "one"
            assert "workers" in kubectl("get", "wpool")
            assert "Bound" in kubectl("get", "wclaim")
            row = run(*wharfinger("get", "pools", "--socket", socket)).splitlines()[1].split()
            assert row[0] == "default/workers"
            dump = run(*wharfinger("pools", "dump", "default/workers", "--socket", socket))
            assert "kind: pods" in dump
            assert "claimed: 1" in dump
            assert "bound to pod" in run(*wharfinger("why", "claim/default/one", "--socket", socket))
            kubectl.apply(tmp_path / "lost.yaml", claim("lost", "nowhere"))
            kubectl("wait", "workerclaim/lost", "--for=jsonpath={.status.reason}=NoSuchPool", "--timeout=60s")
            why = attempt(*wharfinger("why", "claim/default/lost", "--socket", socket))
            assert why.returncode == 3
            assert "remedy: create the WorkerPool" in why.stdout
            unknown = attempt(*wharfinger("why", "claim/default/none", "--socket", socket))
            assert "no WorkerClaim named 'default/none'" in unknown.stderr
            assert "wharfinger_worker_pool_pods" in run(
                *wharfinger("statistics", "-o", "prometheus", "--socket", socket)
            )
            first.process.send_signal(signal.SIGTERM)
            assert first.wait() == 0
        kubectl("delete", "workerclaim/one", "--wait=true")
        kubectl("wait", f"pod/{pod}", "--for=delete", "--timeout=60s")  # the garbage collector deletes it
        kubectl.apply(tmp_path / "two.yaml", claim("two"))
        with daemon(tmp_path, kubeconfig, "--worker-pools") as second:
            second.wait_line("ready:")
            kubectl("wait", "workerclaim/two", BOUND, "--timeout=60s")
            pod = kubectl.value("workerclaim/two", ".status.podName")
            kubectl("delete", "workerclaim/two")
            kubectl("wait", f"pod/{pod}", "--for=delete", "--timeout=60s")


@pytest.mark.slow
def test_hooks_run_in_pods_until_their_pool_is_unset(tmp_path: Path) -> None:
    packages = hooked(tmp_path / "packages" / "web", {"say.sh": bash(MAPS, SAY)}, name="web").parent
    kubeconfig, commands = tmp_path / "kube" / "config", tmp_path / "commands"
    given = ("control-plane", "--no-tls", "--kubeconfig", str(kubeconfig), "--pod-commands", str(commands))
    with program(*wharfinger(*given)) as serving:
        serving.wait_line("control plane ready at")
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, "--worker-pools", "--local-packages", str(packages)) as running:
            running.wait_line("ready:")
            kubectl.apply(tmp_path / "pool.yaml", POOL)
            kubectl("wait", "workerpool/workers", "--for=condition=Ready", "--timeout=60s")
            app = application("web", f"{{folder: {{path: '{packages}'}}}}")
            kubectl.apply(tmp_path / "app.yaml", app.replace("1.0.0}", "1.0.0, pool: workers}"))
            assert str(commands) in running.wait_line("say.sh: has no kubeconfig in ")
            kubectl("wait", "application/app", "--for=condition=Ready", "--timeout=60s")
            kubectl.apply(tmp_path / "app.yaml", app.replace("1.0.0}", "1.0.0, pool: none}"))
            kubectl("wait", "application/app", "--for=jsonpath={.status.observedGeneration}=2", "--timeout=60s")
            kubectl.apply(tmp_path / "map.yaml", MAP)
            assert str(commands) not in running.wait_line("say.sh: has /")
            assert kubectl("get", "workerclaims", "--output", "name") == ""
