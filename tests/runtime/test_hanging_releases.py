"""Releases whose writes hang because the control plane delays them, and a healthy release of the same daemon."""

import re
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import run
from tests.runtime.support.killing import Kubectl, embedded_daemon

BAD = ("bad-one", "bad-two")
OBJECTS = 10
"""The number of objects of each bad release. One release may not have so many writes under way."""
MANY = """\
{{- range until 10 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: many-{{ . }}
{{- end }}
"""
READY_S = 30
"""The reconciler needs a few of these seconds at most. The rest is for a busy machine. Requests time out after 60 s."""


def application(name: str, namespace: str, package: str) -> str:
    return (
        f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"
        "---\napiVersion: wharfinger.dev/v1alpha1\nkind: Application\n"
        f"metadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{packageName: {package}, packageVersion: 1.0.0}}\n"
    )


def hanging(kubectl: Kubectl) -> int:
    """Return how many requests the control plane has delayed so far."""
    metrics = kubectl("get", "--raw", "/metrics")
    return sum(
        int(count) for count in re.findall(r"wharfinger_faults_injected_total\{[^}]*latency[^}]*\} (\d+)", metrics)
    )


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_healthy_release_is_ready_within_seconds_beside_two_that_hang(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "many", "many", "1.0.0", {"templates/many.yaml": MANY})
    chart(tmp_path / "packages" / "web", "web", "1.0.0")
    rule = "latency delay=600s verb=create,patch kind=configmaps namespace=bad-*"
    kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
    with embedded_daemon(tmp_path, "--chaos", rule, "--local-packages", str(tmp_path), "--grace", "0.2") as running:
        running.wait_line("ready:")
        repository = (
            "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
            f"spec: {{folder: {{path: '{tmp_path}/packages'}}}}\n"
        )
        bad = "".join(application("stuck", namespace, "many") for namespace in BAD)
        kubectl.apply(tmp_path / "bad.yaml", repository + bad)
        while hanging(kubectl) < 2 * 8:
            pass  # each check runs a kubectl, so it needs no pause
        kubectl.apply(tmp_path / "good.yaml", application("fine", "good", "web"))
        run(
            *("kubectl", "wait", "--for=condition=Ready", "applications.wharfinger.dev/fine", "--namespace=good"),
            f"--timeout={READY_S}s",
            env={"KUBECONFIG": str(kubectl.kubeconfig)},
        )
        for namespace in BAD:
            path = "{.status.conditions[?(@.type=='Ready')].status}"
            found = kubectl(
                *(
                    "get",
                    "applications.wharfinger.dev",
                    "stuck",
                    f"--namespace={namespace}",
                    f"--output=jsonpath={path}",
                )
            )
            assert found != "True"
        running.process.terminate()
        running.wait()
