"""Tests of the Kubernetes version that the control plane follows. A version other than the default needs a new process."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import ROOT, program, run, wharfinger
from tests.runtime.support.killing import Kubectl, embedded_daemon
from wharfinger.control_plane.kubernetes_version import choose, chosen, table
from wharfinger.kube.version_option import DEFAULT

NEXT = "1.37"
NEW_KINDS = {
    "ClusterTrustBundle.certificates.k8s.io",
    "PodCertificateRequest.certificates.k8s.io",
    "DeviceTaintRule.resource.k8s.io",
    "StorageVersionMigration.storagemigration.k8s.io",
}
ROOTS = """\
apiVersion: certificates.k8s.io/v1
kind: ClusterTrustBundle
metadata: {name: young}
spec: {trustBundle: "PEM of {{ .Capabilities.KubeVersion.Version }}"}
"""
DESIRED = """\
apiVersion: wharfinger.dev/v1alpha1
kind: PackageRepository
metadata: {{name: default}}
spec: {{folder: {{path: {folder}}}}}
---
apiVersion: wharfinger.dev/v1alpha1
kind: Module
metadata: {{name: young}}
spec: {{packageVersion: 1.0.0}}
"""
FACTS = f"""
import json
from wharfinger.control_plane.kubernetes_version import choose
choose("{NEXT}")
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.catalog.columns import _CELLS, columns_of
from wharfinger.control_plane.discovery.documents import VERSION
from wharfinger.control_plane.discovery.openapi_data import document, version_3_names
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types, is_builtin
from wharfinger.control_plane.wire import protobuf

versions = [(kind, version.name) for kind in BUILTIN_KINDS for version in kind.versions]
apis = {{f"{{kind.group}}/{{name}}" if kind.group else name for kind, name in versions}}
encodings = protobuf._table()["kinds"]
print(json.dumps({{
    "release": VERSION["gitVersion"],
    "kinds": [kind.group_kind for kind in BUILTIN_KINDS],
    "unknown to merging": [kind.kind for kind, name in versions if not is_builtin(kind.group, name, kind.kind)],
    "without protobuf": [
        kind.kind
        for kind, name in versions
        if f"{{kind.group}}/{{name}}/{{kind.kind}}".removeprefix("/") not in encodings
    ],
    "without OpenAPI": sorted(
        api for api in apis if ("apis/" if "/" in api else "api/") + api not in version_3_names()
    ),
    "cells without a kind": sorted(set(_CELLS) - {{kind.group_kind for kind in BUILTIN_KINDS}}),
    "columns": [column.name for column in columns_of("DeviceTaintRule.resource.k8s.io")],
    "title": document("v2")["info"]["version"],
    "mode": "mode" in builtin_list_types("", "v1", "Pod").at("spec", "volumes", "emptyDir").fields,
}}))
"""


@contextmanager
def served(folder: Path, version: str) -> Iterator[Kubectl]:
    kubeconfig = folder / "kubeconfig"
    with program(
        *wharfinger("control-plane", "--kubernetes-version", version, "--kubeconfig", str(kubeconfig))
    ) as running:
        running.wait_line("ready at")
        yield Kubectl(kubeconfig)


def test_the_version_cannot_be_changed_after_a_table_was_read() -> None:
    assert table(Path("x/kinds.json")) == Path("x/kinds.json")
    assert chosen() == DEFAULT
    choose(DEFAULT)
    with pytest.raises(RuntimeError, match=f"already follows Kubernetes {DEFAULT}; start another process for {NEXT}"):
        choose(NEXT)
    with pytest.raises(ValueError, match=r"expected 1\.36 or 1\.37, found '1\.20'"):
        choose("1.20")


def test_every_table_of_the_next_version_has_a_default() -> None:
    tables = [path for path in (ROOT / "wharfinger" / "control_plane").rglob(f"*-{NEXT}.*") if path.suffix != ".pyc"]
    assert len(tables) == 9
    assert [path for path in tables if not path.with_name(path.name.replace(f"-{NEXT}", "")).exists()] == []


def test_tables_of_the_next_version_are_consistent() -> None:
    facts = json.loads(run(sys.executable, "-c", FACTS))
    assert facts["release"].startswith(f"v{NEXT}.")
    assert set(facts["kinds"]) >= NEW_KINDS
    for name in ("unknown to merging", "without protobuf", "without OpenAPI", "cells without a kind"):
        assert facts[name] == [], name
    assert facts["columns"] == ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
    assert facts["title"] == NEXT
    assert facts["mode"] is True


@pytest.mark.slow
def test_kubectl_shows_kinds_and_fields_of_the_next_version(tmp_path: Path) -> None:
    bundle = '{"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "metadata": {"name": "roots"}, '
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}], '
    with served(tmp_path, NEXT) as kubectl:
        assert "v1.37." in kubectl("version")
        kubectl.apply(tmp_path / "bundle.json", bundle + '"spec": {"trustBundle": "PEM"}}')
        assert kubectl("get", "clustertrustbundles", "--no-headers").split() == ["roots", "<none>"]
        assert "trustBundle" in kubectl("explain", "clustertrustbundle.spec")
        kubectl.apply(tmp_path / "pod.json", pod + '"volumes": [{"name": "v", "emptyDir": {"mode": 448}}]}}')
        assert kubectl.value("pod/p", ".spec.volumes[0].emptyDir.mode") == "448"
        kubectl("create", "deployment", "web", "--image=nginx")
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        assert kubectl("get", "clusterrole", "system:cluster-trust-bundle-discovery", "--output=name")
        assert kubectl("get", "apiservice", "v1.storagemigration.k8s.io", "--output=name")


@pytest.mark.slow
def test_the_daemon_installs_a_chart_that_needs_the_next_version(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "young", "young", "1.0.0", {"templates/roots.yaml": ROOTS})
    with (tmp_path / "packages" / "young" / "Chart.yaml").open("a") as file:
        file.write("kubeVersion: '>=1.37.0-0'\n")
    options = ("--kubernetes-version", NEXT, "--local-packages", str(tmp_path / "packages"))
    with embedded_daemon(tmp_path, *options) as running:
        running.wait_line(" ready: ")
        kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
        kubectl.apply(tmp_path / "wish.yaml", DESIRED.format(folder=tmp_path / "packages"))
        running.wait_line("young: Ready")
        assert kubectl.value("clustertrustbundle/young", ".spec.trustBundle") == "PEM of v1.37.1"
        running.process.terminate()
        assert running.wait() == 0


@pytest.mark.slow
def test_the_default_version_does_not_have_the_new_kinds(tmp_path: Path) -> None:
    with served(tmp_path, DEFAULT) as kubectl:
        assert "v1.36." in kubectl("version")
        assert "clustertrustbundles" not in kubectl("api-resources")
