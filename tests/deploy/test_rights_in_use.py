"""The rights that the daemon uses, as an API server sees them: each right of its role, and no other right.

The daemon runs with the role of its own chart and a real token, and does all kinds of work that need rights. So this test fails
if the role has a right that no work needs, and if some work needs a right that the role lacks.
"""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from tests.deploy.test_daemon_role import VALUES, make_roles, resource, token_of
from tests.packages.support.charts import chart, write
from tests.programs import Program
from tests.runtime.daemon.test_daemon import daemon
from tests.runtime.receipts.support import open_judge
from tests.runtime.support.killing import Kubectl, held, held_hook
from tests.runtime.support.webhook_package import HOOKS, write_package
from tests.runtime.tasks.test_hook_runs import hooked
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.access_rules import FORBIDDEN, JudgedRequest
from wharfinger.runtime.admission.server import SECRET_NAME
from wharfinger.runtime.controllers.managed_modules import repository_name
from wharfinger.runtime.daemon.rights import FOR_ACCOUNTS, FOR_ADMISSION, NEEDED

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

USER = "system:serviceaccount:wharfinger-system:wharfinger"
PACKAGE_USERS = {f"system:serviceaccount:{namespace}:package" for namespace in ("demo", "wharfinger-system")}
SYSTEM, DEMO = "--namespace=wharfinger-system", "--namespace=demo"
IMPERSONATE = ("", "serviceaccounts", "impersonate")
BY_VALUES = {("apps", "deployments", "list"), ("apps", "deployments", "watch")}
"""Rights from ``rbac.packageRules``: to watch the kinds of the packages' objects."""
REVIEWS = {("authorization.k8s.io", "selfsubjectaccessreviews", "create")}
"""Rights that every user has."""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '{{{{ .Values.a }}}}'}}\n"
NEVER_READY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {wharfinger.dev/never-scheduled: "true"}}
    spec: {containers: [{name: c, image: i}]}
"""
WRITES_BACK = """\
#!/usr/bin/env bash
if [[ "${1:-}" == --config ]]; then echo '{"configVersion": "v1", "beforeHelm": 1}'; exit; fi
echo '[{"op": "add", "path": "/NAME/a", "value": 9}]' >"$CONFIG_VALUES_JSON_PATCH_PATH"
"""
APP: JsonObject = {"versionRange": "1.0.0", "settings": {"a": "1"}}
LASTING: JsonObject = {"packageVersion": "1.0.0", "packageRepositoryName": "lasting"}
SETTINGS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: wharfinger-system}\ndata: {tuner: 'a: 5'}\n"
)


@dataclass(slots=True)
class Judge:
    """An API server in a thread of this process, and the requests for which it checked the rights."""

    requests: list[JudgedRequest] = field(default_factory=list)
    kubeconfig: Path = Path()

    def used(self) -> set[tuple[str, str, str]]:
        """Return the group, resource and verb of the daemon's allowed requests.

        The right to impersonate is included if requests were made as both accounts of packages.
        """
        found = {
            (access.group, access.resource, access.verb)
            for each in self.requests
            if each.user == USER and each.code != FORBIDDEN
            for access in each.accesses()
            if not access.path
        }
        return found | ({IMPERSONATE} if {each.user for each in self.requests} >= PACKAGE_USERS else set())

    def refused(self) -> list[JudgedRequest]:
        return [each for each in self.requests if each.user == USER and each.code == FORBIDDEN]


@contextmanager
def judge(folder: Path) -> Iterator[Judge]:
    found, ready, stop = Judge(), threading.Event(), trio.Event()
    tokens: list[trio.lowlevel.TrioToken] = []
    folder.mkdir()

    async def serve() -> None:
        async with open_judge(folder, found.requests.append) as kubeconfig:
            found.kubeconfig = kubeconfig
            tokens.append(trio.lowlevel.current_trio_token())
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield found
    finally:
        tokens[0].run_sync_soon(stop.set)
        thread.join()


def write_packages(folder: Path) -> None:
    """Write the packages: charts (one of which never becomes ready), packages with webhooks and hooks, and folders of modules."""
    packages, modules = folder / "packages", folder / "modules"
    chart(packages / "app", "app", "1.0.0", {"templates/a.yaml": MAP.format(name="mine")})
    chart(packages / "stuck", "stuck", "1.0.0", {"templates/a.yaml": NEVER_READY})
    chart(packages / "kept", "kept", "1.0.0", {})
    write_package(packages / "crons", HOOKS)
    os.mkfifo(folder / "held")
    hooked(packages / "held", {"a.sh": held_hook(folder, "{configVersion: v1, onStartup: 1}", "ran")}, name="held")
    write(packages / "empty", {"Chart.yaml": "apiVersion: v2\nname: empty\nversion: 1.0.0\n"})
    write_module(modules / "001-tuner", "tuner")
    write_module(modules / "002-other", "other")
    write_module(folder / "later" / "001-later", "later")


def write_module(folder: Path, name: str) -> None:
    """Write a module whose hook writes ``a: 9`` back into the ConfigMap of settings."""
    template = MAP.format(name=name).replace(".Values.a", f".Values.{name}.a")
    values = f"{name}: {{a: 1}}\n{name}Enabled: true\n"
    write(
        folder,
        {"values.yaml": values, "hooks/back.sh": WRITES_BACK.replace("NAME", name), "templates/a.yaml": template},
    )
    (folder / "hooks" / "back.sh").chmod(0o755)


def wait(kubectl: Kubectl, what: str, how: str, *where: str) -> None:
    kubectl("wait", f"--for={how}", what, *where, "--timeout=90s")


def at_work(running: Program) -> None:
    running.wait_line("admission: serving a certificate")
    running.wait_line("ready:")


def stop(running: Program) -> None:
    running.process.terminate()
    assert running.wait() == 0


def stop_while_a_hook_runs(folder: Path, kubectl: Kubectl, running: Program) -> None:
    """Stop the daemon while the hook of a package runs, and let the hook fail. The daemon then writes a last status and ends."""
    spec: JsonObject = {"packageName": "held", "serviceAccountName": "package", **LASTING}
    kubectl.apply(folder / "held.json", resource("Application", "held", spec, "demo"))
    hook, _ = held(folder)
    running.process.terminate()
    running.wait_line("stopping; running tasks have")
    os.killpg(os.getpgid(hook), signal.SIGKILL)
    assert running.wait() == 0


def install(folder: Path, kubectl: Kubectl, running: Program) -> None:
    """Install everything, and cause drift three times. The three corrections turn an Event into a series."""
    wishes = [
        resource("PackageRepository", "default", {"folder": {"path": str(folder / "packages")}}),
        resource("PackageRepository", "lasting", {"folder": {"path": str(folder / "packages")}}),
        resource("Module", "crons", {"packageVersion": "1.0.0", "serviceAccountName": "package"}),
        resource("Module", "empty", {"packageVersion": "1.0.0", "namespace": "fresh"}),
    ]
    for name, more in {"app": APP, "stuck": LASTING, "kept": LASTING}.items():
        spec: JsonObject = {"packageName": name, "serviceAccountName": "package", **more}
        wishes.append(resource("Application", name, spec, "demo"))
    kubectl.apply(folder / "wishes.yaml", "\n---\n".join(wishes))
    for name in ("tuner", "other", "demo/app", "demo/kept", "crons", "empty"):
        running.wait_line(f"{name}: Ready")
    wait(kubectl, "configmap/tuner", "jsonpath={.data.a}=9", SYSTEM)
    for value in ("2", "3", "4"):
        kubectl("patch", "configmap", "mine", DEMO, "--type=merge", f'--patch={{"data": {{"a": "{value}"}}}}')
        wait(kubectl, "configmap/mine", "jsonpath={.data.a}=1", DEMO)
    wait(kubectl, "events", "jsonpath={.series.count}=3", DEMO, "--field-selector=reason=DriftCorrected")


def remove(folder: Path, kubectl: Kubectl) -> None:
    """Remove a module folder, packages, and a repository. Two Applications stay.

    Also damage the certificate, which the next start of the daemon repairs.
    """
    shutil.rmtree(folder / "modules" / "002-other")
    wait(kubectl, "modules.wharfinger.dev/other", "delete")
    kubectl("delete", "modules.wharfinger.dev", "crons", "empty", "--timeout=90s")
    kubectl("delete", "applications.wharfinger.dev", "app", DEMO, "--timeout=90s")
    kubectl("delete", "packagerepositories.wharfinger.dev", "default", "--timeout=90s")
    kubectl("patch", "secret", SECRET_NAME, SYSTEM, "--type=merge", '--patch={"data": {"tls.crt": "eHg="}}')


def test_the_daemon_uses_exactly_the_rights_of_its_role(tmp_path: Path) -> None:
    write_packages(tmp_path)
    with judge(tmp_path / "server") as api:
        kubectl = Kubectl(api.kubeconfig)
        make_roles(kubectl, tmp_path, *VALUES, "admission.enabled=true")
        kubectl.apply(tmp_path / "settings.yaml", SETTINGS)
        for namespace in ("demo", "wharfinger-system"):
            kubectl("create", "serviceaccount", "package", f"--namespace={namespace}")
            account = f"--serviceaccount={namespace}:package"
            kubectl("create", "clusterrolebinding", f"package-{namespace}", "--clusterrole=cluster-admin", account)
        kubectl("label", "namespace", "wharfinger-system", "wharfinger.dev/service-account=package")
        token, local = token_of(kubectl, tmp_path), ("--local-packages", str(tmp_path / "packages"))
        options = (*local, "--config-map", "wharfinger-system/settings", "--admission=127.0.0.1:0")
        with daemon(tmp_path, token, *options, "--modules-dir", str(tmp_path / "modules")) as running:
            at_work(running)
            install(tmp_path, kubectl, running)
            remove(tmp_path, kubectl)
            stop(running)
        kubectl("delete", "configmap", "settings", SYSTEM)
        with daemon(tmp_path, token, *options, "--modules-dir", str(tmp_path / "later")) as running:
            at_work(running)
            running.wait_line("later: Ready")
            wait(kubectl, "configmap/later", "jsonpath={.data.a}=9", SYSTEM)
            wait(kubectl, "modules.wharfinger.dev/tuner", "delete")
            wait(kubectl, f"packagerepositories.wharfinger.dev/{repository_name(tmp_path / 'modules')}", "delete")
            stop_while_a_hook_runs(tmp_path, kubectl, running)
        with daemon(tmp_path / "blue", token, *local, "--shard=blue") as running:
            running.wait_line("ready:")
            stop(running)
    assert api.refused() == []
    needed = {
        (right.group, right.resource, verb)
        for right in (*NEEDED, *FOR_ADMISSION, *FOR_ACCOUNTS)
        for verb in right.verbs
    }
    used = api.used()
    assert sorted(needed - used) == [], "rights that nothing uses"
    assert sorted(used - needed - BY_VALUES - REVIEWS) == [], "rights that no table has"
