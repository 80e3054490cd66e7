"""Two Applications: the chart of one reads objects in other namespaces, and the chart of the other one writes such objects.

Both are refused unless a label of the namespace or an option of the daemon allows this access.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import Program, attempt, program, wharfinger
from tests.runtime.support.killing import Kubectl

READ = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: lk}
data:
  stolen: {{ (lookup "v1" "Secret" "victimns" "crown").data | toJson | quote }}
"""
WRITE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: evil2, namespace: kube-system}
data: {a: b}
---
apiVersion: v1
kind: Namespace
metadata: {name: evilns2}
"""
REMEDY = "kubectl label namespace tenant wharfinger.dev/cluster-scope=allowed"


@contextmanager
def world(folder: Path, *more: str) -> Iterator[tuple[Program, Kubectl]]:
    """Run a daemon, write both charts, and create a Secret in the namespace ``victimns`` and an empty namespace ``tenant``."""
    chart(folder / "packages" / "reader", "reader", "1.0.0", {"templates/config.yaml": READ})
    chart(folder / "packages" / "writer", "writer", "1.0.0", {"templates/config.yaml": WRITE})
    state = folder / "state"
    arguments = ("--state-dir", str(state), "--local-packages", str(folder / "packages"), *more)
    with program(*wharfinger("run", "--embedded", *arguments)) as running:
        running.wait_line(" ready: ")
        kubectl = Kubectl(state / "embedded" / "kubeconfig")
        for namespace in ("victimns", "tenant"):
            kubectl("create", "namespace", namespace)
        kubectl("create", "secret", "generic", "crown", "--namespace=victimns", "--from-literal=k=CROWN-JEWEL")
        yield running, kubectl
        running.process.terminate()
        assert running.wait() == 0


def install(kubectl: Kubectl, folder: Path) -> None:
    """Create a PackageRepository with both charts, and one Application for each chart in the namespace ``tenant``."""
    text = (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{folder: {{path: {folder}/packages}}}}\n"
    )
    for name in ("reader", "writer"):
        text += (
            "---\napiVersion: wharfinger.dev/v1alpha1\nkind: Application\n"
            f"metadata: {{name: {name}, namespace: tenant}}\nspec: {{packageName: {name}, packageVersion: 1.0.0}}\n"
        )
    kubectl.apply(folder / "wish.yaml", text)


def application(name: str) -> str:
    return f"applications.wharfinger.dev/{name}"


def stolen(kubectl: Kubectl) -> str:
    return kubectl("get", "configmap", "lk", "--namespace=tenant", "--output=jsonpath={.data.stolen}")


def let_through(kubectl: Kubectl) -> None:
    """Check that both Applications become Ready, and that their charts have read and written outside of their namespace."""
    for name in ("reader", "writer"):
        kubectl("wait", "--for=condition=Ready", application(name), "--namespace=tenant", "--timeout=50s")
    assert "Q1JPV04tSkVXRUw=" in stolen(kubectl)
    assert kubectl("get", "configmap", "evil2", "--namespace=kube-system", "--output=name")
    assert kubectl("get", "namespace", "evilns2", "--output=name")


@pytest.mark.slow
def test_the_attack_is_refused_until_the_namespace_is_labelled(tmp_path: Path) -> None:
    with world(tmp_path) as (_running, kubectl):
        install(kubectl, tmp_path)
        for name in ("reader", "writer"):
            kubectl("wait", "--for=condition=Stalled", application(name), "--namespace=tenant", "--timeout=50s")
        said = {
            name: kubectl("get", application(name), "--namespace=tenant", "--output=jsonpath={.status.summary}")
            for name in ("reader", "writer")
        }
        assert "Secret victimns/crown" in said["reader"]
        assert "ConfigMap kube-system/evil2" in said["writer"]
        assert "Namespace evilns2" in said["writer"]
        for text in said.values():
            assert REMEDY in text
            assert "Module" in text
        socket = str(tmp_path / "state" / "run" / "debug.sock")
        why = attempt(*wharfinger("why", "tenant.writer", "--socket", socket)).stdout
        assert "OutsideNamespace" in why
        assert "remedy: install the package as a Module" in why
        env = {"KUBECONFIG": str(kubectl.kubeconfig)}
        for gone in (
            ["configmap", "lk", "-n", "tenant"],
            ["configmap", "evil2", "-n", "kube-system"],
            ["ns", "evilns2"],
        ):
            assert "NotFound" in attempt("kubectl", "get", *gone, env=env).stderr
        # The user only has to set this label:
        kubectl("label", "namespace", "tenant", "wharfinger.dev/cluster-scope=allowed")
        let_through(kubectl)
        # If the label is removed, existing objects stay, and the next change is refused.
        kubectl("label", "namespace", "tenant", "wharfinger.dev/cluster-scope-")
        kubectl("wait", "--for=condition=Stalled", application("writer"), "--namespace=tenant", "--timeout=50s")
        assert kubectl("get", "namespace", "evilns2", "--output=jsonpath={.status.phase}") == "Active"
        assert kubectl("get", "configmap", "evil2", "--namespace=kube-system", "--output=name")


@pytest.mark.slow
def test_application_scope_cluster_allows_cluster_access(tmp_path: Path) -> None:
    with world(tmp_path, "--application-scope", "cluster") as (_running, kubectl):
        install(kubectl, tmp_path)
        let_through(kubectl)


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["", "cluster-wide", "Namespace"])
def test_an_invalid_application_scope_is_refused(scope: str) -> None:
    done = attempt(*wharfinger("run", "--application-scope", scope))
    assert done.returncode == 2
    assert "--application-scope" in done.stderr
