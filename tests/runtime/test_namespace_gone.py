"""A namespace is deleted while no daemon runs. The next daemon also deletes the objects that a release has in other places."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import Program
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl

ROLE = (
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: '{{ .Release.Namespace }}-admin'}\n"
    "rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"
)
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
ELSEWHERE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notice, namespace: default}\ndata: {a: b}\n"
FILES = {"templates/role.yaml": ROLE, "templates/config.yaml": CONFIG, "templates/notice.yaml": ELSEWHERE}


def resources(packages: Path, namespace: str) -> str:
    return (
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}, labels: {{wharfinger.dev/cluster-scope: allowed}}}}\n"
        "---\napiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{folder: {{path: '{packages}'}}}}\n---\n"
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {{name: app, namespace: {namespace}}}\n"
        "spec: {packageName: reader, packageVersion: 1.0.0}\n"
    )


def stop(running: Program) -> None:
    running.process.terminate()
    assert running.wait() == 0


@pytest.mark.slow
@pytest.mark.unmeasured
def test_objects_of_a_release_elsewhere_are_deleted_with_its_namespace(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    chart(packages / "reader", "reader", "1.0.0", FILES)
    local = ("--local-packages", str(packages))
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with daemon(tmp_path, kubeconfig, *local) as running:
            running.wait_line("ready:")
            kubectl.apply(tmp_path / "all.yaml", resources(packages, "shop"))
            running.wait_line("shop/app: Ready")
            stop(running)
        kubectl("delete", "namespace", "shop", "--wait=false")
        kubectl("wait", "--for=delete", "configmaps,secrets", "--all", "--namespace=shop", "--timeout=50s")
        assert "shop-admin" in kubectl("get", "clusterrole", "--output=name")
        # This daemon runs on another machine, which does not have the state of the first daemon.
        with daemon(tmp_path / "other", kubeconfig, *local) as running:
            running.wait_line("shop/app: deleted ClusterRole.rbac.authorization.k8s.io shop-admin")
            running.wait_line("shop/app: deleted ConfigMap default/notice")
            kubectl("wait", "--for=delete", "namespace/shop", "--timeout=50s")
            stop(running)
        assert "shop-admin" not in kubectl("get", "clusterrole", "--output=name")
        assert "notice" not in kubectl("get", "configmap", "--namespace=default", "--output=name")
        with daemon(tmp_path / "other", kubeconfig, *local) as running:
            running.wait_line("ready:")
            kubectl.apply(tmp_path / "all.yaml", resources(packages, "shop"))
            running.wait_line("shop/app: Ready")
            stop(running)
