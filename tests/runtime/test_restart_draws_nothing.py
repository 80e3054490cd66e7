"""Restarts of the daemon without any changes. They cause no render, no revision, no write, and no new random values."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.packages.support.charts import chart, tool, write
from tests.programs import Program, run
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl

pytestmark = pytest.mark.unmeasured

SECRET: Final = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-drawn}\n"
    "stringData: {password: {{ randAlphaNum 12 }}, text: {{ .Values.text | default `none` | quote }}}\n"
)
ASKING: Final = (
    '{{ if .Capabilities.APIVersions.Has "example.com/v2" }}{{ fail "that is not there" }}{{ end }}\n'
    "{{ if .Release.IsInstall }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-first}\n{{ end }}\n"
)
LOOKING: Final = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-seen}\n"
    'data: {seen: {{ lookup "v1" "Namespace" "" .Release.Namespace | dig "metadata" "name" "nothing" | quote }}}\n'
)
DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sails.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sails, singular: sail, kind: Sail, listKind: SailList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
APPLICATION: Final = (
    "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: default}}\n"
    "spec: {{packageName: {package}, packageVersion: 1.0.0}}\n---\n"
)
MODULES: Final = "".join(
    f"apiVersion: wharfinger.dev/v1alpha1\nkind: Module\nmetadata: {{name: {name}}}\n"
    f"spec: {{packageName: {name}, packageVersion: 1.0.0, enabled: true}}\n---\n"
    for name in ("module-a", "module-b")
)
NAMES: Final = ("drawing", "asking", "looking", "plain")


def packages(folder: Path) -> Path:
    """Write the charts and packages of the test. Most generate random values. Some query API versions or look up an object."""
    chart(folder / "drawing", "drawing", "1.0.0", {"templates/drawn.yaml": SECRET})
    chart(folder / "asking", "asking", "1.0.0", {"templates/drawn.yaml": SECRET, "templates/asking.yaml": ASKING})
    chart(folder / "looking", "looking", "1.0.0", {"templates/drawn.yaml": SECRET, "templates/looking.yaml": LOOKING})
    chart(folder / "plain", "plain", "1.0.0")
    chart(folder / "later", "later", "1.0.0", {"crds/sails.yaml": DEFINITION})
    for name in ("module-a", "module-b"):
        text = f"apiVersion: v1\nname: {name}\nversion: 1.0.0\ntype: Module\n"
        write(folder / name, {"package.yaml": text, "templates/drawn.yaml": SECRET})
    return folder


def counted_helm(folder: Path) -> Path:
    """Write a script that logs each call, and then calls the real helm."""
    script = folder / "helm"
    script.write_text(f'#!/bin/sh\necho "$1" >>"{folder}/calls"\nexec "{tool("helm")}" "$@"\n')
    script.chmod(0o755)
    (folder / "calls").touch()
    return script


def calls(folder: Path) -> list[str]:
    """Return the commands with which helm was called, except for the queries of its version."""
    return [call for call in (folder / "calls").read_text().split() if call != "version"]


@contextmanager
def started(folder: Path, kubeconfig: Path, name: str = "state") -> Iterator[Program]:
    """Run a daemon, and stop it with SIGTERM at the end. ``name`` is the name of the folder that contains its state."""
    helm = ("--helm", str(folder / "helm"))
    with daemon(folder / name, kubeconfig, "--local-packages", str(folder / "packages"), *helm) as running:
        yield running
        running.process.terminate()
        assert running.wait() == 0


def written(kubectl: Kubectl) -> list[str]:
    """Return the resource version of each object of the packages, and of each record, in all namespaces."""
    kinds = "secrets,configmaps,customresourcedefinitions"
    columns = "KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,VERSION:.metadata.resourceVersion"
    return kubectl("get", kinds, "--all-namespaces", f"--output=custom-columns={columns}").splitlines()


def revisions(kubeconfig: Path) -> set[str]:
    """Return the revision numbers of all releases."""
    listed = json.loads(run("helm", "list", "-A", "--output=json", env={"KUBECONFIG": str(kubeconfig)}))
    assert len(listed) == len(NAMES) + 3
    return {one["revision"] for one in listed}


def ready(running: Program, *names: str) -> None:
    for name in names:
        running.wait_line(f"{name}: Ready")


@pytest.mark.slow
def test_a_restart_without_changes_writes_nothing(tmp_path: Path) -> None:
    """After some packages were installed, another package has added a kind to the cluster, and another Module was enabled.
    Nevertheless, a restarted daemon renders no package again.
    """
    packages(tmp_path / "packages")
    counted_helm(tmp_path)
    repository = f"{{folder: {{path: '{tmp_path / 'packages'}'}}}}"
    text = (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {repository}\n---\n"
    )
    every = (*(f"default/{name}" for name in (*NAMES, "later")), "module-a", "module-b")
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        # Without this label, the chart of an Application may not look up a Namespace.
        kubectl("label", "namespace/default", "wharfinger.dev/cluster-scope=allowed")
        with started(tmp_path, kubeconfig) as first:
            first.wait_line("ready:")
            text += "".join(APPLICATION.format(name=name, package=name) for name in NAMES)
            kubectl.apply(tmp_path / "manifest", text + MODULES.split("---\n")[0])
            ready(first, *(f"default/{name}" for name in NAMES), "module-a")
            kubectl.apply(tmp_path / "manifest", APPLICATION.format(name="later", package="later") + MODULES)
            ready(first, *every)
            assert calls(tmp_path)
        before, drawn = written(kubectl), kubectl("get", "secret/drawing-drawn", "--output=json")
        assert revisions(kubeconfig) == {"1"}
        for name in ("state", "other"):
            (tmp_path / "calls").write_text("")
            with started(tmp_path, kubeconfig, name) as again:
                ready(again, *every)
            assert (calls(tmp_path), revisions(kubeconfig)) == ([], {"1"})
            assert written(kubectl) == before
            assert kubectl("get", "secret/drawing-drawn", "--output=json") == drawn


@pytest.mark.slow
def test_generated_values_survive_a_users_rollback(tmp_path: Path) -> None:
    """A user's ``helm rollback`` writes the daemon's last record again, without the daemon's annotations. The next daemon must
    not generate new values nevertheless.
    """
    packages(tmp_path / "packages")
    counted_helm(tmp_path)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        with started(tmp_path, kubeconfig) as first:
            first.wait_line("ready:")
            repository = f"{{folder: {{path: '{tmp_path / 'packages'}'}}}}"
            text = (
                "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
                f"spec: {repository}\n---\n"
            )
            kubectl.apply(tmp_path / "manifest", text + APPLICATION.format(name="app", package="drawing"))
            ready(first, "default/app")
            kubectl("patch", "application/app", "--type=merge", '--patch={"spec":{"settings":{"text":"second"}}}')
            kubectl.wait("application/app", "{.status.release.revision}=2")
            kubectl.wait("secret/app-drawn", "{.data.text}=c2Vjb25k")
        before = kubectl.value("secret/app-drawn", ".data.password")
        run("helm", "rollback", "app", "1", env={"KUBECONFIG": str(kubeconfig)})
        assert kubectl.value("secret/app-drawn", ".data.password") != before
        with started(tmp_path, kubeconfig, "other") as again:
            again.wait_line("changed the release last (revision 3)")
            kubectl("annotate", "application/app", "wharfinger.dev/force-requested-at=now")
            kubectl.wait("application/app", "{.status.release.revision}=4")
            assert kubectl.value("secret/app-drawn", ".data.password") == before
