"""The daemon's own chart: helm and an API server accept it, helm and a daemon can install it, and its role has the rights in
NEEDED."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, tool
from tests.programs import ROOT
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.runtime.daemon.rights import (
    FOR_ACCOUNTS,
    FOR_ADMISSION,
    FOR_ADMISSION_SERVICE,
    FOR_POOLS,
    NEEDED,
    Right,
)
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.status.summary import State

CHART = ROOT / "deploy" / "chart"
EVERYTHING = (
    "replicas=2",
    "networkPolicy.enabled=true",
    "podDisruptionBudget.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "metrics.alerts.enabled=true",
    "metrics.dashboard.enabled=true",
    "rbac.clusterAdmin=true",
    "daemon.workerPools=true",
    "daemon.requireServiceAccount=true",
    "admission.enabled=true",
)
WRONG = {
    "replica=2": "additional properties 'replica' not allowed",
    "replicas=0": "minimum: got 0, want 1",
    "image.digest=latest": "does not match pattern",
    "daemon.logLevel=loud": "value must be one of",
    "metrics.port=80": "minimum: got 80, want 1,024",
    "daemon.shard=Blue": "does not match pattern",
    "terminationGracePeriodSeconds=5": "minimum: got 5, want 20",
    "replicas=2,state.persistentVolumeClaim.enabled=true": "two daemons never share a state folder",
    "daemon.shard=blue,admission.enabled=true": "admission.enabled is for the daemon without daemon.shard",
    "daemon.shard=blue,daemon.workerPools=true": "daemon.workerPools is for the daemon without daemon.shard",
    "terminationGracePeriodSeconds=3700": "maximum: got 3,700, want 3,610",
}


def helm(*arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm, and wait for its end."""
    where = () if kubeconfig is None else ("--kubeconfig", str(kubeconfig))
    return subprocess.run(
        [tool("helm"), *arguments, *where], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )


def rendered(*values: str) -> list[JsonObject]:
    """Return the objects of the chart, rendered with these values."""
    sets = (f"--set={each}" for each in values)
    done = helm("template", "wharfinger", str(CHART), "--namespace", SYSTEM_NAMESPACE, *sets)
    assert done.returncode == 0, done.stderr
    return [each for each in read_yaml_all(done.stdout, what="the chart") if isinstance(each, dict)]


def of_kind(kind: str, *values: str) -> list[JsonObject]:
    """Return the objects of one kind in the chart, rendered with these values."""
    return [each for each in rendered(*values) if each["kind"] == kind]


def test_helm_lint_passes_for_the_chart() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("values", "message"), WRONG.items())
def test_wrong_values_are_refused(values: str, message: str) -> None:
    done = helm("template", "wharfinger", str(CHART), f"--set={values}")
    assert done.returncode != 0
    assert message in done.stderr


def rules(obj: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield the group, resource and verb of every right in a role."""
    for rule in find_list(obj, "rules"):
        for group in find_list(rule, "apiGroups"):
            for resource in find_list(rule, "resources"):
                yield from ((str(group), str(resource), str(verb)) for verb in find_list(rule, "verbs"))


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        ((), NEEDED),
        (("daemon.workerPools=true",), (*NEEDED, *FOR_POOLS)),
        (("admission.enabled=true",), (*NEEDED, *FOR_ADMISSION, *FOR_ADMISSION_SERVICE)),
        (("daemon.requireServiceAccount=true",), (*NEEDED, *FOR_ACCOUNTS)),
    ],
)
def test_roles_of_the_chart_are_the_rights_that_the_daemon_checks(
    values: tuple[str, ...], needed: tuple[Right, ...]
) -> None:
    (cluster_role,), roles = of_kind("ClusterRole", *values), of_kind("Role", *values)
    wanted = [(each.group, each.resource, verb, each.namespace) for each in needed for verb in each.verbs]
    everywhere = {(group, resource, verb) for group, resource, verb, namespace in wanted if not namespace}
    inside = {(group, resource, verb) for group, resource, verb, namespace in wanted if namespace}
    assert set(rules(cluster_role)) == everywhere
    assert {rule for role in roles for rule in rules(role)} == inside
    assert {find_str(role, "metadata", "namespace") for role in roles} == {SYSTEM_NAMESPACE}


def test_the_container_has_no_privileges() -> None:
    (deployment,) = of_kind("Deployment")
    pod = find(deployment, "spec", "template", "spec")
    (container,) = find_list(pod, "containers")
    assert find(pod, "securityContext", "runAsNonRoot") is True
    assert find(container, "securityContext") == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & (pod.keys() if isinstance(pod, dict) else set())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "given"),
    [
        (("daemon.workerPools=true", "admission.enabled=true"), "--worker-pools"),
        (("daemon.shard=blue",), "--shard=blue"),
    ],
)
def test_arguments_of_the_container_are_options_of_the_daemon(values: tuple[str, ...], given: str) -> None:
    (deployment,) = of_kind("Deployment", "daemon.extraArgs={--max-work=4}", *values)
    (container,) = find_list(deployment, "spec", "template", "spec", "containers")
    command, *options = [str(each) for each in find_list(container, "args")]
    assert command == "run"
    known = subprocess.run(
        [str(ROOT / ".venv/bin/wharfinger"), "run", "--help"], capture_output=True, text=True, check=True
    )
    assert [each for each in options if each.partition("=")[0] not in known.stdout] == []
    assert {"--max-work=4", given} <= {*options}


def test_alerts_and_dashboard_use_metrics_that_exist() -> None:
    documented = set(re.findall(r"wharfinger_[a-z_]+", (ROOT / "docs" / "metrics.md").read_text()))
    for file in (CHART / "alerts" / "wharfinger.yaml", CHART / "dashboards" / "wharfinger.json"):
        used = set(re.findall(r"wharfinger_[a-z_]+", file.read_text()))
        assert used
        assert used - documented == set(), file
    states = set(re.findall(r'state=~"([A-Za-z|]+)"', (CHART / "alerts" / "wharfinger.yaml").read_text()))
    assert {state for each in states for state in each.split("|")} <= {str(state) for state in State}
    json.loads((CHART / "dashboards" / "wharfinger.json").read_text())


@pytest.mark.slow
def test_an_api_server_accepts_every_object(tmp_path: Path) -> None:
    with control_plane(tmp_path) as admin:
        kubectl = Kubectl(admin)
        kubectl("create", "namespace", SYSTEM_NAMESPACE)
        # These kinds belong to the Prometheus operator, so this cluster does not have them.
        foreign = {"ServiceMonitor", "PrometheusRule"}
        for values in ((), EVERYTHING, ("state.persistentVolumeClaim.enabled=true", "rbac.create=false")):
            objects = [each for each in rendered(*values) if each["kind"] not in foreign]
            file = tmp_path / "objects.json"
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
            said = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(file))
            assert said.count("dry run") == len(objects)


@pytest.mark.slow
def test_helm_installs_the_chart_and_the_daemon_works_as_its_account(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "web", "web", "1.0.0")
    values = tmp_path / "values.yaml"
    values.write_text(
        "rbac: {packageRules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}]}\n"
    )
    with control_plane(tmp_path) as admin:
        kubectl = Kubectl(admin)
        arguments = (
            "--namespace",
            SYSTEM_NAMESPACE,
            "--create-namespace",
            "--wait",
            "--timeout=50s",
            f"--values={values}",
        )
        done = helm("install", "wharfinger", str(CHART), *arguments, kubeconfig=admin)
        assert done.returncode == 0, done.stderr
        assert "rbac.packageRules" not in done.stdout
        token = kubectl("create", "token", "wharfinger", "-n", SYSTEM_NAMESPACE).strip()
        config = read_yaml(admin.read_bytes(), what="kubeconfig")
        assert isinstance(config, dict)
        user = find_str(find_list(config, "users")[0], "name")
        account = tmp_path / "account.kubeconfig"
        account.write_text(json.dumps({**config, "users": [{"name": user, "user": {"token": token}}]}))
        with daemon(tmp_path / "daemon", account, "--local-packages", str(tmp_path)) as running:
            running.wait_line("ready:")
            kubectl.apply(
                tmp_path / "application.yaml", application(tmp_path / "packages", "Application", "shop", "web")
            )
            kubectl("wait", "--for=condition=Ready", "applications.wharfinger.dev/shop", "--timeout=50s")
            running.process.terminate()
            assert running.wait() == 0
            assert not any("orbidden" in line for line in running.lines), running.lines


@pytest.mark.slow
def test_the_daemon_installs_its_own_chart(tmp_path: Path) -> None:
    with (
        control_plane(tmp_path) as admin,
        daemon(tmp_path, admin, "--local-packages", str(ROOT)) as running,
    ):
        running.wait_line("ready:")
        kubectl = Kubectl(admin)
        kubectl.apply(tmp_path / "module.yaml", application(ROOT / "deploy", "Module", "wharfinger", "chart"))
        kubectl("wait", "--for=condition=Ready", "modules.wharfinger.dev/wharfinger", "--timeout=50s")
        (listed,) = json.loads(helm("list", "-n", SYSTEM_NAMESPACE, "-o", "json", kubeconfig=admin).stdout)
        assert (listed["name"], listed["status"]) == ("wharfinger", "deployed")


def application(folder: Path, kind: str, name: str, package: str) -> str:
    """Return the manifest of a repository (a folder of this machine), and of a package in it."""
    where = ", namespace: default" if kind == "Application" else ""
    return (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{folder: {{path: '{folder}'}}}}\n---\n"
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}{where}}}\n"
        f"spec: {{packageName: {package}, packageVersion: {'0.1.0' if package == 'chart' else '1.0.0'}}}\n"
    )
