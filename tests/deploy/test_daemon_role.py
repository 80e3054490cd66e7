"""A daemon that installs the packages of the demo with only the rights in the role of its own chart. Its token is real, and the
API server checks its rights.

The daemon may only do what its role allows, and watch the kinds that packages contain. Packages act as their own accounts.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.deploy.test_chart import of_kind
from tests.programs import ROOT
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.runtime.daemon.rights import FOR_ACCOUNTS, NEEDED, missing_rights

pytestmark = pytest.mark.unmeasured

VALUES = (
    "daemon.requireServiceAccount=true",
    "rbac.packageRules[0].apiGroups[0]=*",
    "rbac.packageRules[0].resources[0]=*",
    "rbac.packageRules[0].verbs[0]=list",
    "rbac.packageRules[0].verbs[1]=watch",
)
MANAGED = """\
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {namespace-defaults/managed: "true"}}
"""


def resource(kind: str, name: str, spec: JsonObject, namespace: str = "") -> str:
    metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
    return json.dumps({"apiVersion": "wharfinger.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})


def token_of(kubectl: Kubectl, folder: Path) -> Path:
    """Return the path of a kubeconfig of the daemon's service account, with a new token."""
    token = kubectl("create", "token", "wharfinger", "--namespace=wharfinger-system").strip()
    config = read_yaml(kubectl.kubeconfig.read_bytes(), what="kubeconfig")
    assert isinstance(config, dict)
    (user,) = find_list(config, "users")
    path = folder / "daemon.kubeconfig"
    path.write_text(json.dumps({**config, "users": [{"name": find_str(user, "name"), "user": {"token": token}}]}))
    return path


def make_roles(kubectl: Kubectl, folder: Path, *values: str) -> None:
    """Create the daemon's account and its roles from the chart with these values, and a namespace for packages."""
    for namespace in ("wharfinger-system", "demo"):
        kubectl("create", "namespace", namespace)
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    objects = [json.dumps(obj) for kind in kinds for obj in of_kind(kind, *values)]
    kubectl.apply(folder / "roles.yaml", "\n---\n".join(objects))


@contextmanager
def prepared(folder: Path) -> Iterator[tuple[Kubectl, Path]]:
    """Run a cluster with the daemon's account and its roles from the chart. Yield kubectl, and the daemon's kubeconfig."""
    with control_plane(folder) as admin:
        kubectl = Kubectl(admin)
        make_roles(kubectl, folder, *VALUES)
        yield kubectl, token_of(kubectl, folder)


@pytest.mark.slow
def test_the_demo_passes_under_the_roles_of_the_chart(tmp_path: Path) -> None:
    examples = ROOT / "examples"
    versions = {"web-service": "1.0.0", "reloader": "1.0.0", "todo-api": "2.1.0"}
    with prepared(tmp_path) as (kubectl, kubeconfig):
        for namespace, role in (("demo", "admin"), ("wharfinger-system", "cluster-admin")):
            kubectl("create", "serviceaccount", "package", f"--namespace={namespace}")
            kind = "rolebinding" if role == "admin" else "clusterrolebinding"
            where = (f"--namespace={namespace}",) if role == "admin" else ()
            kubectl("create", kind, "package", f"--clusterrole={role}", f"--serviceaccount={namespace}:package", *where)
        arguments = ("--local-packages", str(examples), "--require-service-account")
        with daemon(tmp_path, kubeconfig, *arguments) as running:
            running.wait_line("ready:")
            kubectl("label", "namespace", "wharfinger-system", "wharfinger.dev/service-account=package")
            parts = [resource("PackageRepository", "default", {"folder": {"path": str(examples)}}), MANAGED]
            for name, version in versions.items():
                spec: JsonObject = {"packageName": name, "packageVersion": version, "serviceAccountName": "package"}
                parts.append(resource("Application", name, spec, "demo"))
            parts.append(resource("Module", "namespace-defaults", {"packageVersion": "1.0.0"}))
            kubectl.apply(tmp_path / "demo.yaml", "\n---\n".join(parts))
            for name in versions:
                what = f"applications.wharfinger.dev/{name}"
                kubectl("wait", "--for=condition=Ready", what, "--namespace=demo", "--timeout=120s")
            kubectl("wait", "--for=condition=Ready", "modules.wharfinger.dev/namespace-defaults", "--timeout=120s")
            assert kubectl("get", "limitrange", "--namespace=team", "--output=name")
            assert kubectl("get", "deployments", "--namespace=demo", "--output=name")
            kubectl("delete", "applications.wharfinger.dev", "--all", "--namespace=demo", "--timeout=120s")
            kubectl("delete", "modules.wharfinger.dev", "--all", "--timeout=120s")
            assert kubectl("get", "deployments", "--namespace=demo", "--output=name") == ""
            running.process.terminate()
            assert running.wait() == 0
            assert not [line for line in running.lines if "orbidden" in line]


@pytest.mark.slow
def test_each_removed_rule_is_reported_with_its_reason(tmp_path: Path) -> None:
    needed = (*NEEDED, *FOR_ACCOUNTS)
    role = next(obj for obj in of_kind("ClusterRole", *VALUES) if find_str(obj, "metadata", "name") == "wharfinger")
    (lease,) = of_kind("Role", *VALUES)
    with prepared(tmp_path) as (kubectl, kubeconfig):
        kubectl("delete", "clusterrolebinding", "wharfinger-packages")  # it would allow what the removed rules allow
        connection = load_connection(kubeconfig)

        async def ask() -> dict[tuple[str, str], set[str]]:
            async with open_client(connection) as client:
                found: dict[tuple[str, str], set[str]] = {}
                for each in await missing_rights(client, needed):
                    found.setdefault((each.resource, each.why), set()).add(each.verb)
                return found

        assert trio.run(ask) == {}
        count = 0
        for whole in (role, lease):
            rules = find_list(whole, "rules")
            for number, rule in enumerate(rules):
                less = {**whole, "rules": [*rules[:number], *rules[number + 1 :]]}
                kubectl.apply(tmp_path / "less.json", json.dumps(less))
                found = trio.run(ask)
                group, plural = find_list(rule, "apiGroups")[0], str(find_list(rule, "resources")[0])
                right = next(each for each in needed if (each.group, each.resource) == (group, plural))
                ((_, why),) = found
                assert (why, set(*found.values())) == (right.why, set(right.verbs))
                kubectl.apply(tmp_path / "whole.json", json.dumps(whole))
                count += 1
        assert count == len(needed)
