"""Two daemon processes for one cluster. If the leader is killed, or is frozen and resumed later, the other one continues."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from tests.programs import Program, attempt, run, wharfinger
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, held, held_hook, kill
from tests.runtime.tasks.test_hook_runs import bash, hooked
from tests.scale import FULL, scaled
from wharfinger.runtime.daemon.leadership import IDENTITY_FILE, LEASE
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

LEASE_S = scaled(15, 10)
SLACK_S = 1.0 if FULL else 120.0
"""The standby takes over within this time after the Lease has expired; a sample may run on a busy machine."""
TEMPLATE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
    'data: {{mode: {{{{ .Values.mode | default "" | quote }}}}, seen: {{{{ .Values.seen | quote }}}}}}\n'
)


def package(folder: Path, name: str, hook: str) -> None:
    """Write a package with this hook, and with a chart that has one ConfigMap with the package's name."""
    files = {"templates/out.yaml": TEMPLATE.format(name=name)}
    hooked(folder / "packages" / name, {"a.sh": hook}, name=name, files=files)


def noting(folder: Path, name: str) -> str:
    """Return a hook that writes its package's name at each run."""
    return bash("{configVersion: v1, onStartup: 1, beforeHelm: 1}", f'echo {name} >>"{folder}/notes"')


def manifest(folder: Path, *names: str) -> str:
    """Return the YAML of a PackageRepository for ``folder``, and of one Application for each name."""
    repository = (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{folder: {{path: '{folder}/packages'}}}}\n"
    )
    documents = [
        repository,
        *(
            "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\n"
            f"metadata: {{name: {name}, namespace: default}}\nspec: {{packageName: {name}, packageVersion: 1.0.0}}\n"
            for name in names
        ),
    ]
    return "---\n".join(documents)


def said_at(program: Program, text: str) -> float:
    """Wait until a program logs a line with this text, and return the time of the line, in seconds since 1970."""
    return datetime.fromisoformat(program.wait_line(text).split(" ")[0]).timestamp()


def host(stack: ExitStack, folder: Path, kubeconfig: Path, *more: str) -> Program:
    """Start a daemon with its state below this folder."""
    local = ("--local-packages", str(folder.parent), "--lease-duration", str(LEASE_S), *more)
    return stack.enter_context(daemon(folder, kubeconfig, *local))


def identity(folder: Path) -> str:
    return (folder / "state" / IDENTITY_FILE).read_text().strip()


@dataclass
class Load:
    """A thread that keeps changing the settings of one package, so that the daemons have work."""

    kubectl: Kubectl
    name: str
    number: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def change(self) -> None:
        while not self.stop.is_set():
            self.number += 1
            patch = json.dumps({"spec": {"settings": {"mode": f"m{self.number}"}}})
            self.kubectl("patch", "application", self.name, "--type=merge", f"--patch={patch}")

    @contextmanager
    def under_way(self) -> Iterator[None]:
        thread = threading.Thread(target=self.change)
        thread.start()
        try:
            yield
        finally:
            self.stop.set()
            thread.join()


def versions(kubectl: Kubectl, names: list[str]) -> list[str]:
    """Return the resource versions of the ConfigMaps of some packages."""
    return [kubectl.value(f"configmap/{name}", ".metadata.resourceVersion") for name in names]


def revisions(kubectl: Kubectl, name: str) -> list[tuple[str, str]]:
    """Return the revisions of a release from its records, each with the fence (fencing token) of its writer."""
    found = json.loads(kubectl("get", "secrets", "-l", f"owner=helm,name={name}", "-o", "json"))["items"]
    return sorted(
        (one["metadata"]["labels"]["version"], one["metadata"]["annotations"]["wharfinger.dev/fence"]) for one in found
    )


def test_a_killed_leader_is_replaced_and_unchanged_packages_are_not_run_again(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    still = [f"still{number}" for number in range(scaled(6, 3))]
    for name in (*still, "busy"):
        package(tmp_path, name, noting(tmp_path, name))
    late: list[float] = []
    with control_plane(tmp_path) as kubeconfig, ExitStack() as stack:
        kubectl = Kubectl(kubeconfig)
        folders = [tmp_path / "one", tmp_path / "two"]
        leader = host(stack, folders[0], kubeconfig)
        leader.wait_line("ready:")
        kubectl.apply(tmp_path / "manifest", manifest(tmp_path, *still, "busy"))
        for name in (*still, "busy"):
            leader.wait_line(f"default/{name}: Ready")
        standby = host(stack, folders[1], kubeconfig)
        before = versions(kubectl, still)
        notes = (tmp_path / "notes").read_text().split()
        load = Load(kubectl, "busy")
        with load.under_way():
            for number in range(scaled(20, 2)):
                standby.wait_line("on standby: ")
                leader.wait_line("default/busy: Ready")
                begun = time.time()
                kill(leader)
                late.append(said_at(standby, "holds the Lease") - begun)
                standby.wait_line("ready:")
                for name in still:
                    standby.wait_line(f"default/{name}: Ready")
                assert versions(kubectl, still) == before, f"round {number}"
                leader, folders = standby, [*reversed(folders)]
                standby = host(stack, folders[1], kubeconfig)
        wanted = f"m{load.number}"
        kubectl.wait("configmap/busy", f"{{.data.mode}}={wanted}")
        after = (tmp_path / "notes").read_text().split()
        assert [after.count(name) for name in still] == [notes.count(name) for name in still]
        assert after.count("busy") > notes.count("busy")
        for name in still:
            assert revisions(kubectl, name) == [("1", "1")]
        record_property("seconds from kill to takeover", [round(one, 2) for one in late])
        assert max(late) <= LEASE_S + SLACK_S, late
        leader.process.terminate()
        assert leader.wait() == 0


def test_a_frozen_leader_writes_nothing_when_it_is_resumed(tmp_path: Path) -> None:
    """A hook ends while the leader is frozen, so the resumed leader would next apply the package. It exits instead."""
    os.mkfifo(tmp_path / "held")
    package(tmp_path, "app", held_hook(tmp_path, "{configVersion: v1, onStartup: 1}", "ran"))
    with control_plane(tmp_path) as kubeconfig, ExitStack() as stack:
        kubectl = Kubectl(kubeconfig)
        first = host(stack, tmp_path / "one", kubeconfig)
        first.wait_line("ready:")
        second = host(stack, tmp_path / "two", kubeconfig)
        second.wait_line("on standby: ")
        kubectl.apply(tmp_path / "manifest", manifest(tmp_path, "app"))
        hook, _ = held(tmp_path)
        os.kill(first.process.pid, signal.SIGSTOP)
        os.killpg(os.getpgid(hook), signal.SIGKILL)
        (tmp_path / "go").touch()
        second.wait_line("leaseTransitions: 2")
        second.wait_line("default/app: Ready")
        before = kubectl("get", "configmaps,secrets,applications", "-A", "-o", "json")
        os.kill(first.process.pid, signal.SIGCONT)
        assert first.wait() == 1
        assert first.lines[-1].startswith(f"error: Lease {SYSTEM_NAMESPACE}/{LEASE}: ")
        assert kubectl("get", "configmaps,secrets,applications", "-A", "-o", "json") == before
        assert revisions(kubectl, "app") == [("1", "2")]
        second.process.terminate()
        assert second.wait() == 0


def test_leader_and_standby_both_report_the_leader(tmp_path: Path) -> None:
    def ask(folder: Path, *arguments: str) -> str:
        return run(*wharfinger(*arguments, "--socket", str(folder / "state" / "run" / "debug.sock")))

    def ready(folder: Path) -> str:
        socket = str(folder / "state" / "run" / "debug.sock")
        return attempt("curl", "--silent", "--unix-socket", socket, "http://daemon/readyz").stdout

    one, two = tmp_path / "one", tmp_path / "two"
    with control_plane(tmp_path) as kubeconfig, ExitStack() as stack:
        first = host(stack, one, kubeconfig)
        first.wait_line("ready:")
        second = host(stack, two, kubeconfig)
        second.wait_line("on standby: ")
        said = json.loads(ask(two, "get", "leader", "-o", "json"))
        lease = f"{SYSTEM_NAMESPACE}/{LEASE}"
        assert said == {"lease": lease, "leader": identity(one), "fence": 1, "identity": identity(two)}
        assert (
            ask(one, "get", "leader", "-o", "name") == ask(two, "get", "leader", "-o", "name") == f"{identity(one)}\n"
        )
        header, row = ask(one, "get", "leader").splitlines()
        assert header.split() == ["LEASE", "LEADER", "FENCE", "THIS", "DAEMON", "ROLE"]
        assert row.split() == [lease, identity(one), "1", identity(one), "leader"]
        assert ready(one) == f"ready\nleader: {identity(one)}\n"
        assert ready(two).startswith("not ready: ")
        assert ready(two).endswith(f"\nleader: {identity(one)}\n")
        first.process.terminate()
        assert first.wait() == 0
        second.wait_line("ready:")
        assert ready(two) == f"ready\nleader: {identity(two)}\n"


def test_two_shards_work_at_once_and_a_killed_one_is_taken_over(tmp_path: Path) -> None:
    package(tmp_path, "app", noting(tmp_path, "app"))
    with control_plane(tmp_path) as kubeconfig, ExitStack() as stack:
        kubectl = Kubectl(kubeconfig)
        first = host(stack, tmp_path / "one", kubeconfig)
        first.wait_line("ready:")
        blue = host(stack, tmp_path / "two", kubeconfig, "--shard", "blue")
        blue.wait_line("ready:")
        kubectl("label", "namespace", "default", "wharfinger.dev/shard=blue")
        kubectl.apply(tmp_path / "manifest", manifest(tmp_path, "app"))
        blue.wait_line("default/app: Ready")
        kubectl.wait("applications.wharfinger.dev/app", "{.status.shard}=blue")
        before, notes = versions(kubectl, ["app"]), (tmp_path / "notes").read_text()
        leases = kubectl("get", "leases", "--namespace", SYSTEM_NAMESPACE, "-o", "name").split()
        assert [each.partition("/")[2] for each in leases] == [LEASE, f"{LEASE}-blue"]
        said = run(
            *wharfinger(
                "get", "leader", "-o", "name", "--socket", str(tmp_path / "two" / "state" / "run" / "debug.sock")
            )
        )
        assert said == f"{identity(tmp_path / 'two')}\n"
        kill(blue)
        kubectl("label", "namespace", "default", "wharfinger.dev/shard-")
        first.wait_line("taken over from shard 'blue'")
        first.wait_line("default/app: Ready")
        assert versions(kubectl, ["app"]) == before
        assert revisions(kubectl, "app") == [("1", "1")]
        assert (tmp_path / "notes").read_text() == notes
        first.process.terminate()
        assert first.wait() == 0
