"""An installed package after changes by other processes, after a user's helm operation, and after an interrupted upgrade.

The tests use a real daemon, kubectl and helm.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import Program, run
from tests.runtime.support.killing import Kubectl, application, embedded_daemon, kill

pytestmark = pytest.mark.unmeasured

APP = "applications.wharfinger.dev/app"
CONFIG = "configmap/app"
PATCHED = "drift: ConfigMap default/app: /data/text by kubectl-patch"


@contextmanager
def installing(folder: Path) -> Iterator[tuple[Program, Kubectl]]:
    """Run a daemon that may install packages from ``folder``. All of its state is below this folder."""
    with embedded_daemon(folder, "--local-packages", str(folder)) as running:
        running.wait_line("ready:")
        yield running, Kubectl(folder / "state" / "embedded" / "kubeconfig")


def install(folder: Path, kubectl: Kubectl) -> None:
    """Install a chart with one ConfigMap from a folder, and wait until it is Ready."""
    chart(folder / "web", version="1.0.0")
    kubectl.apply(folder / "app.yaml", application("web", f"{{folder: {{path: {folder}}}}}"))
    kubectl("wait", "--for=condition=Ready", APP, "--timeout=50s")


def change(kubectl: Kubectl, what: str, patch: str) -> None:
    kubectl("patch", what, "--type=merge", f"--patch={patch}")


def history(kubectl: Kubectl) -> list[tuple[str, str]]:
    """Return the status and the description of each revision, as helm reports them."""
    said = run("helm", "history", "app", "--output=json", env={"KUBECONFIG": str(kubectl.kubeconfig)})
    return [(revision["status"], revision["description"]) for revision in json.loads(said)]


@pytest.mark.slow
def test_changes_by_another_process_are_corrected_or_reported(tmp_path: Path) -> None:
    with installing(tmp_path) as (_, kubectl):
        install(tmp_path, kubectl)

        change(kubectl, CONFIG, '{"data": {"text": "theirs", "more": "theirs"}}')
        kubectl.wait(CONFIG, "{.data.text}=none")
        assert kubectl.value(CONFIG, ".data.more") == "theirs", "fields that are not in the chart are not corrected"
        kubectl("delete", CONFIG)
        kubectl("wait", "--for=create", CONFIG, "--timeout=50s")
        assert kubectl.value(CONFIG, ".data.text") == "none"
        assert history(kubectl) == [("deployed", "Install complete")]

        change(kubectl, APP, '{"spec": {"drift": {"mode": "warn"}}}')
        kubectl.wait(APP, "{.status.observedGeneration}=2")
        kubectl("wait", "--for=condition=Ready", APP, "--timeout=50s")
        change(kubectl, CONFIG, '{"data": {"text": "theirs"}}')
        kubectl.wait(APP, f"{{.status.warnings[0]}}={PATCHED}")
        change(kubectl, APP, '{"spec": {"settings": {"text": "wanted"}}}')
        kubectl("wait", "--for=create", "secret/sh.helm.release.v1.app.v2", "--timeout=50s")
        kubectl.wait(APP, "{.status.release.revision}=2")
        assert (kubectl.value(CONFIG, ".data.text"), kubectl.value(APP, ".status.warnings[0]")) == ("theirs", PATCHED)

        change(kubectl, APP, '{"spec": {"drift": {"mode": "correct"}}}')
        kubectl.wait(CONFIG, "{.data.text}=wanted")


def warned_of(kubectl: Kubectl, count: int) -> list[str]:
    """Wait until the status has so many warnings, and return them. `kubectl wait` cannot wait for the length of a list."""
    found: list[str] = []
    for _ in range(500):
        found = json.loads(kubectl.value(APP, ".status.warnings") or "[]")
        if len(found) >= count:
            return found
    raise AssertionError(found)


@pytest.mark.slow
def test_a_users_helm_operation_is_reported_and_stays_until_the_package_changes(tmp_path: Path) -> None:
    with installing(tmp_path) as (_, kubectl):
        install(tmp_path, kubectl)
        change(kubectl, APP, '{"spec": {"settings": {"text": "two"}}}')
        kubectl.wait(CONFIG, "{.data.text}=two")
        kubectl.wait(APP, "{.status.release.revision}=2")

        run("helm", "rollback", "app", "1", env={"KUBECONFIG": str(kubectl.kubeconfig)})
        warnings = warned_of(kubectl, 2)
        assert warnings[0] == "drift: ConfigMap default/app: /data/text by helm"
        assert warnings[1].startswith(
            "release: a helm command (field manager Helm) changed the release last (revision 3)"
        )
        assert kubectl.value(CONFIG, ".data.text") == "none"
        kubectl("delete", CONFIG)
        kubectl.wait(APP, "{.status.warnings[0]}=drift: ConfigMap default/app: gone")

        change(kubectl, APP, '{"spec": {"settings": {"text": "three"}}}')
        kubectl("wait", "--for=create", CONFIG, "--timeout=50s")
        kubectl.wait(CONFIG, "{.data.text}=three")
        kubectl.wait(APP, "{.status.release.revision}=4")
        assert kubectl.value(APP, ".status.warnings") == ""
        assert history(kubectl) == [
            ("superseded", "Install complete"),
            ("superseded", "Upgrade complete"),
            ("superseded", "Rollback to 1"),
            ("deployed", "Upgrade complete"),
        ]


@pytest.mark.slow
def test_an_interrupted_upgrade_is_continued_at_once(tmp_path: Path) -> None:
    """After an interrupted upgrade, Helm itself refuses every later operation ("another operation is in progress"). The daemon
    marks the interrupted revision as failed, and makes the next revision immediately.
    """
    second, third = ("secret/sh.helm.release.v1.app.v2", "secret/sh.helm.release.v1.app.v3")
    with installing(tmp_path) as (running, kubectl):
        install(tmp_path, kubectl)
        # The daemon waits for a terminating object, so this upgrade stays incomplete.
        change(kubectl, CONFIG, '{"metadata": {"finalizers": ["example.test/hold"]}}')
        kubectl("delete", CONFIG, "--wait=false")
        change(kubectl, APP, '{"spec": {"settings": {"text": "two"}}}')
        kubectl("wait", "--for=create", second, "--timeout=50s")
        kubectl.wait(second, "{.metadata.labels.status}=pending-upgrade")
        kill(running)
    with installing(tmp_path) as (_, kubectl):
        kubectl("wait", "--for=create", third, "--timeout=50s")
        assert kubectl.value(second, ".metadata.labels.status") == "failed"
        change(kubectl, CONFIG, '{"metadata": {"finalizers": null}}')
        kubectl.wait(APP, "{.status.release.revision}=3")
        kubectl("wait", "--for=condition=Ready", APP, "--timeout=50s")
        assert kubectl.value(CONFIG, ".data.text") == "two"
        (_, installed), (failed, why), last = history(kubectl)
        assert (installed, failed, last) == ("Install complete", "failed", ("deployed", "Upgrade complete"))
        assert why.startswith("interrupted while pending-upgrade: ")
