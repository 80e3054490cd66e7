"""A package whose hooks validate, mutate and convert objects, with processes for the daemon and the control plane."""

import json
from pathlib import Path

import pytest

from tests.programs import attempt
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from tests.runtime.support.webhook_package import HOOKS, write_package
from wharfinger.formats.json.value import JsonObject, JsonValue

DEFINITION = "crontabs.stable.example.com"
OBJECTS = """\
apiVersion: wharfinger.dev/v1alpha1
kind: PackageRepository
metadata: {{name: default}}
spec: {{folder: {{path: {folder}}}}}
---
apiVersion: wharfinger.dev/v1alpha1
kind: Module
metadata: {{name: crons}}
spec: {{packageVersion: 1.0.0}}
"""


def crontab(name: str, version: str, cron: JsonValue, image: str) -> str:
    spec: JsonObject = {"cron": cron, "image": image}
    metadata: JsonObject = {"name": name, "namespace": "default"}
    return json.dumps(
        {"apiVersion": f"stable.example.com/{version}", "kind": "CronTab", "metadata": metadata, "spec": spec}
    )


@pytest.mark.slow
def test_hooks_validate_mutate_and_convert_objects_until_their_package_is_removed(tmp_path: Path) -> None:
    write_package(tmp_path / "packages" / "crons", HOOKS)
    options = ("--admission=127.0.0.1:0", "--local-packages", str(tmp_path / "packages"))
    with control_plane(tmp_path) as admin, daemon(tmp_path, admin, *options) as running:
        running.wait_line("admission: serving a certificate")
        kubectl, manifest = Kubectl(admin), tmp_path / "objects.yaml"
        kubectl.apply(manifest, OBJECTS.format(folder=tmp_path / "packages"))
        running.wait_line("crons: Ready")

        def try_to_apply(text: str) -> str:
            manifest.write_text(text)
            done = attempt("kubectl", "--kubeconfig", str(admin), "apply", "--filename", str(manifest))
            return done.stderr if done.returncode else ""

        refused = try_to_apply(crontab("a", "v1alpha2", "* *", "docker.example.org/x"))
        assert 'admission webhook "private-repo-policy.example.com" denied the request: Only images from' in refused
        kubectl.apply(manifest, crontab("a", "v1alpha1", ["*", "1"], "repo.example.com/x"))
        assert kubectl.value("crontabs.v1alpha2.stable.example.com/a", ".spec") == (
            '{"cron":"* 1","image":"repo.example.com/x","replicas":333}'
        )
        assert kubectl.value("crontabs.v1alpha1.stable.example.com/a", ".spec.cron") == '["*","1"]'
        refused = try_to_apply(crontab("b", "v1alpha1", ["*"], "docker.example.org/x"))
        assert "Only images from repo.example.com are allowed" in refused, "in the version of its rules"

        # A change by another writer is reverted.
        kubectl("delete", "validatingwebhookconfiguration", "wharfinger-hooks-crons")
        kubectl("wait", "--for=create", "validatingwebhookconfiguration/wharfinger-hooks-crons", "--timeout=50s")
        assert try_to_apply(crontab("b", "v1alpha2", "*", "docker.example.org/x"))

        kubectl("delete", "module", "crons", "--timeout=50s")
        left = kubectl("get", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--output=name")
        assert left.split() == ["validatingwebhookconfiguration.admissionregistration.k8s.io/wharfinger.dev"]
        assert kubectl.value(f"crd/{DEFINITION}", ".spec.conversion") == '{"strategy":"None"}'
        kubectl.apply(manifest, crontab("b", "v1alpha2", "*", "docker.example.org/x"))
        kubectl("delete", "crd", DEFINITION, "--timeout=50s")
        running.process.terminate()
        assert running.wait() == 0
