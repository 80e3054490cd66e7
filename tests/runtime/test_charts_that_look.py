"""Charts that contain CRDs and look up objects in the cluster, installed by a daemon in its own process."""

import base64
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.packages.support.charts import chart
from tests.programs import ROOT, run
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application

pytestmark = pytest.mark.unmeasured

LOOK: Final = '{{ lookup "v1" "Namespace" "" .Release.Namespace | dig "metadata" "name" "nothing" }}'
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sails.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sails, singular: sail, kind: Sail, listKind: SailList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: used to lookup "sails"
          properties: {spec: {type: object, properties: {seen: {type: string}}}}
"""
SAIL: Final = f"apiVersion: example.com/v1\nkind: Sail\nmetadata: {{name: main}}\nspec: {{seen: {LOOK}}}\n"
OWN_KIND: Final = '{{ $found := lookup "example.com/v1" "Sail" .Release.Namespace "main" }}\n'


def install(folder: Path, kubeconfig: Path, package: str) -> Kubectl:
    """Let a daemon install ``packages/<package>`` as ``app``, and wait until it is Ready."""
    kubectl = Kubectl(kubeconfig)
    packages = folder / "packages"
    with daemon(folder, kubeconfig, "--local-packages", str(packages)) as running:
        running.wait_line("ready:")
        # Without this label, an Application may not apply CRDs.
        kubectl("label", "namespace/default", "wharfinger.dev/cluster-scope=allowed")
        kubectl.apply(folder / "manifest", application(package, f"{{folder: {{path: '{packages}'}}}}"))
        running.wait_line("default/app: Ready")
        running.process.terminate()
        assert running.wait() == 0
    listed = run("helm", "list", "--namespace=default", "--output=json", env={"KUBECONFIG": str(kubeconfig)})
    assert '"revision":"1"' in listed
    return kubectl


@pytest.mark.slow
def test_definitions_of_subcharts_come_before_the_chart_is_rendered(tmp_path: Path) -> None:
    """The chart has CRDs in a subchart, as the charts of large operators do. tests/corpus compares its render with helm's."""
    shutil.copytree(ROOT / "tests" / "charts" / "observing", tmp_path / "packages" / "observing")
    with control_plane(tmp_path) as kubeconfig:
        kubectl = install(tmp_path, kubeconfig, "observing")
        assert kubectl.value("watchers.watch.example/app", ".spec.secret") == "app-password"
        assert kubectl.value("configmap/app-rules", ".data.known") == "true"
        assert kubectl("get", "crd", "--output=name").count("sleepers") == 0
        password = base64.b64decode(kubectl.value("secret/app-password", ".data.password"))
        assert password == b"of app"
        settings = kubectl("get", "configmap/app-node-exporter", "--output=go-template={{.data.settings}}")
        assert settings == "a: 1\n\n\n"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "place", ["crds/a.yaml", "templates/a.yaml", "charts/db/crds/a.yaml", "charts/db/templates/a.yaml"]
)
def test_a_chart_may_create_objects_of_its_own_kinds(tmp_path: Path, place: str) -> None:
    """A CRD in ``crds/`` is applied before the chart is rendered, so templates can even look up objects of its kind.

    A CRD in ``templates/`` is applied together with the other objects of the release.
    """
    looking = OWN_KIND if "crds" in place else ""
    files = {
        place: DEFINITION,
        "templates/sail.yaml": looking + SAIL,
        "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    }
    chart(tmp_path / "packages" / "web", "web", "1.0.0", files)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = install(tmp_path, kubeconfig, "web")
        assert kubectl.value("sails.example.com/main", ".spec.seen") == "default"


@pytest.mark.slow
def test_the_word_lookup_in_a_description_is_not_a_lookup(tmp_path: Path) -> None:
    """The chart only has the word in a text, and calls no ``lookup``. So its render does not need the cluster, and is cached."""
    values = "text: '{{ .Release.Name }}'\nabout: used to lookup `that`\n"
    files = {
        "charts/db/crds/a.yaml": DEFINITION,
        "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "templates/sail.yaml": SAIL.replace(LOOK, "{{ tpl .Values.text . }}"),
        "values.yaml": values,
    }
    chart(tmp_path / "packages" / "web", "web", "1.0.0", files)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = install(tmp_path, kubeconfig, "web")
        assert kubectl.value("sails.example.com/main", ".spec.seen") == "app"
    assert list((tmp_path / "state" / "renders").iterdir())
