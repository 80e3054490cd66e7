"""The demo: packages of every kind are pushed to a real registry, requested with kubectl, and become Ready.

``make demo`` runs all of its steps. ``make run`` runs it until the packages are Ready, and leaves everything running until
Ctrl-C. Everything is real: docker-registry, helm, kubectl, the daemon and its control plane are processes on loopback. All
state is in a temporary folder that is removed at the end. Each step prints its commands and their results. The exit code is 0
only if every step succeeded.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the demo without a traceback

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from demo_processes import (
    PATIENCE_S,
    ROOT,
    DemoError,
    Signals,
    Stopped,
    await_that,
    free_port,
    last_lines,
    listening,
    stop,
)
from demo_progress import Daemon, Progress, is_ready, runs, since

from wharfinger.runtime.paths import too_long_socket

WHARFINGER = [sys.executable, "-m", "wharfinger"]
VERSIONS = {"web-service": "1.0.0", "reloader": "1.0.0", "todo-api": "2.1.0", "namespace-defaults": "1.0.0"}
INSTALLED = {
    "demo.web": "web-service", "demo.reload": "reloader", "demo.todo": "todo-api", "namespace-defaults": "namespace-defaults",
}  # fmt: skip
KEPT = re.compile(
    r"Namespace .*|ConfigMap \S+/kube-root-ca\.crt|ServiceAccount \S+/default"
    r"|PersistentVolumeClaim demo/data-todo-.*|PersistentVolume .*"
)
"""Objects that outlive a package on purpose: namespaces, with the objects that each cluster creates in them, and data."""
CONFIGMAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: page
  namespace: demo
  labels: {wharfinger.dev/reload: "true"}
  annotations: {wharfinger.dev/reload-targets: web}
data:
  colour: blue
"""


def main() -> int:
    """Run the demo, and return 0 if every step succeeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stay", action="store_true", help="leave everything running until Ctrl-C")
    args = parser.parse_args()
    started = time.monotonic()
    signals = Signals()
    try:
        signals.catch()
        with tempfile.TemporaryDirectory(prefix="wharfinger-demo-") as folder, signals.children:
            try:
                Demo(Path(folder), signals).run(stay=args.stay)
            finally:
                signals.unwinding = True
        print(f"\ndemo: done in {time.monotonic() - started:.0f} s, everything as it should be", flush=True)
    except BrokenPipeError:
        # The reader (head, less) has ended. At exit, Python would try to write the rest of the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print("demo: stopped, because the reader of its output has ended", file=sys.stderr)
        return 1
    except DemoError as error:
        print(f"\ndemo: failed: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print("\ndemo: stopped", file=sys.stderr)
        return 0 if args.stay else 128 + stopped.number
    return 0


def program_folders() -> list[str]:
    """Return the folders of the programs that the demo uses. The folder of the chart engine is included only if there is an
    engine.
    """
    engine = shutil.which("wharfinger-engine")
    return [f"{ROOT}/.venv/bin", f"{ROOT}/.cache/tools/bin", *([str(Path(engine).parent)] if engine else [])]


class Demo:
    """The steps of the demo, in order."""

    def __init__(self, folder: Path, signals: Signals) -> None:
        self.folder = folder
        self.signals = signals
        self.state = folder / "state"
        self.log = folder / "daemon.log"
        self.registry_log = folder / "registry.log"
        self.socket = self.state / "run" / "debug.sock"
        self.registry = ""
        self.digests: dict[str, str] = {}
        self.daemon = Daemon(self.socket)
        self.environment = {**os.environ, "KUBECONFIG": str(self.state / "embedded" / "kubeconfig"),
                            "HELM_CACHE_HOME": str(folder / "helm"), "HELM_CONFIG_HOME": str(folder / "helm"),
                            "HELM_DATA_HOME": str(folder / "helm"), "WHARFINGER_SOCKET": str(self.socket)}  # fmt: skip

    def run(self, *, stay: bool) -> None:
        """Run all steps. With ``stay``, run the steps until all packages are Ready, and then wait. Raises DemoError."""
        if problem := too_long_socket(self.socket):
            raise DemoError(f"{self.socket}: {problem}; set TMPDIR to a folder with a shorter path, such as /tmp")
        title("A registry, and the daemon with a control plane of its own")
        registry = self.start_registry()
        daemon = self.start_daemon()
        self.push_packages()
        before = self.objects()
        self.install()
        self.check_digests()
        if stay:
            self.stay(daemon)
        self.configmap_makes_a_hook_run()
        self.label_makes_a_hook_run()
        self.settings_change_without_a_registry(registry)
        self.ask_helm_and_the_daemon()
        self.delete_everything(before)
        title("SIGTERM: the daemon drains and exits")
        code = stop(daemon, "daemon")
        if code != 0:
            raise DemoError(f"the daemon exited with {code}{last_lines(self.log)}")
        print("daemon: exit 0")

    def start_registry(self) -> subprocess.Popen[bytes]:
        """Serve a real docker-registry on a free port."""
        port = free_port()
        config = self.folder / "registry.yml"
        config.write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.folder}/registry}}}}\n"
            f"http: {{addr: '127.0.0.1:{port}'}}\n"
        )
        binary = shutil.which("docker-registry")
        if binary is None:
            raise DemoError("docker-registry is not installed; run `make setup` as root")
        process = self.signals.start([binary, "serve", str(config)], self.registry_log, self.environment)
        await_that(lambda: listening(port), what="the registry listens", process=process, log=self.registry_log)
        self.registry = f"127.0.0.1:{port}"
        print(f"registry at {self.registry}")
        return process

    def start_daemon(self) -> subprocess.Popen[bytes]:
        """Start `wharfinger run --embedded`, and wait until it is ready."""
        started = self.log.stat().st_size if self.log.exists() else 0
        command = [*WHARFINGER, "run", "--embedded", "--state-dir", str(self.state)]
        print(f"$ {' '.join(shown(command))}", flush=True)
        process = self.signals.start(command, self.log, self.environment)

        def ready() -> str:
            said = self.log.read_bytes()[started:].decode(errors="replace")
            return "\n".join(line for line in said.splitlines() if " ready: " in line)

        await_that(lambda: bool(ready()), what="the daemon is up", process=process, log=self.log)
        self.running = process
        print(ready(), flush=True)
        return process

    def push_packages(self) -> None:
        """Check one package, and push a plain chart, a package.yaml package, a chart with Helm hooks, and a module folder."""
        title("A package is checked, with the examples of its conversions, and four are pushed")
        self.show(*WHARFINGER, "package", "check", "examples/reloader")
        for package, version in VERSIONS.items():
            target = f"{self.registry}/packages/{package}:{version}"
            said = self.show(*WHARFINGER, "package", "push", f"examples/{package}", target, "--plain-http")
            self.digests[package] = said.split()[-1]

    def install(self) -> None:
        """Apply the manifests with kubectl, and show each stage of the packages until all are Ready."""
        title("kubectl requests three Applications and a Module, and each becomes Ready")
        manifest = self.folder / "application.yaml"
        manifest.write_text(
            (ROOT / "examples" / "application.yaml")
            .read_text()
            .replace("registry.example/packages", f"{self.registry}/packages")
            .replace("scheme: HTTPS", "scheme: HTTP")
        )
        print(manifest.read_text())
        self.show("kubectl", "create", "namespace", "demo")
        progress = Progress(self.daemon, tuple(INSTALLED))
        self.show("kubectl", "apply", "--filename", str(manifest))
        self.await_it("all packages are Ready", progress.all_ready)
        self.show(
            *("kubectl", "wait", "--for=condition=Ready", "applications.wharfinger.dev"),
            *("--all", "--namespace=demo", "--timeout=60s"),
        )
        self.show(
            "kubectl", "wait", "--for=condition=Ready", "modules.wharfinger.dev/namespace-defaults", "--timeout=60s"
        )
        kinds = "applications.wharfinger.dev,modules.wharfinger.dev,deployments,statefulsets"
        self.show("kubectl", "get", kinds, "--all-namespaces")

    def check_digests(self) -> None:
        """Check for each package that the pushed version is installed, and that it was requested by its digest."""
        title("What is installed is what was pushed, pulled by digest")
        fetched = self.registry_log.read_text(errors="replace")
        for name, package in INSTALLED.items():
            kind, _, instance = ("module", "", name) if name == package else ("application", "", name.partition(".")[2])
            digest = self.quiet("kubectl", "get", kind, instance, "--namespace=demo",
                                "--output=jsonpath={.status.currentVersion.digest}")  # fmt: skip
            request = f'"GET /v2/packages/{package}/manifests/{digest} HTTP/1.1" 200'
            print(f"  {name:<20}pushed    {self.digests[package]}\n{'':<22}installed {digest}")
            if digest != self.digests[package]:
                raise DemoError(f"{name}: installed {digest or 'nothing'}, pushed was {self.digests[package]}")
            if request not in fetched:
                raise DemoError(
                    f"{name}: the registry never received a request for {digest}{last_lines(self.registry_log)}"
                )
            print(f"{'':<22}registry  {request}")

    def configmap_makes_a_hook_run(self) -> None:
        """Show the bash hook of `reloader`: it watches ConfigMaps, and restarts the Deployments that they name."""
        title("A ConfigMap made with kubectl makes a bash hook run")
        before = runs(self.daemon.package("demo.reload"), "hooks/reload.sh")
        (self.folder / "page.yaml").write_text(CONFIGMAP)
        print(CONFIGMAP)
        self.show("kubectl", "create", "--filename", str(self.folder / "page.yaml"))
        self.await_it(
            "hooks/reload.sh ran for the ConfigMap",
            lambda: runs(self.daemon.package("demo.reload"), "hooks/reload.sh") > before,
        )
        dump = self.quiet(*WHARFINGER, "dump", "demo.reload")
        print("$ wharfinger dump demo.reload    (its hooks)")
        print(dump[dump.index("\nhooks:\n") + 1 : dump.index("\nqueue:\n")])
        path = r"{.spec.template.metadata.annotations.reload\.wharfinger\.dev/page}"
        ask = ("kubectl", "get", "deployment", "web", "--namespace=demo", f"--output=jsonpath={path}")
        self.await_it("the pod template of web carries the ConfigMap's checksum", lambda: bool(self.quiet(*ask)))
        print(f"annotation reload.wharfinger.dev/page of Deployment web's pod template: {self.quiet(*ask)}")
        self.show("kubectl", "rollout", "status", "deployment/web", "--namespace=demo", "--timeout=60s")

    def label_makes_a_hook_run(self) -> None:
        """Show the module's Python hook. It writes a list of namespaces to the values, and the chart creates limits in each
        namespace.
        """
        title("A namespace with a label gets its limits, through the module's Python hook")
        self.show("kubectl", "create", "namespace", "team")
        self.show("kubectl", "label", "namespace", "team", "namespace-defaults/managed=true")
        ask = ("kubectl", "get", "limitrange", "--namespace=team", "--output=name")
        self.await_it("namespace team has its LimitRange", lambda: bool(self.quiet(*ask)))
        self.show("kubectl", "get", "limitranges,resourcequotas,networkpolicies", "--namespace=team")
        self.await_it("the module is Ready again", lambda: is_ready(self.daemon.package("namespace-defaults")))

    def settings_change_without_a_registry(self, registry: subprocess.Popen[bytes]) -> None:
        """Check that changed settings are applied without a download, while the registry is stopped."""
        title("The registry is stopped, and a settings change flows through Configure and Run")
        stop(registry, "registry")
        if listening(int(self.registry.partition(":")[2])):
            raise DemoError(f"a process still listens at {self.registry}")
        print(f"no process listens at {self.registry} any more")
        progress = Progress(self.daemon, ("demo.web",))
        before = progress.latest["demo.web"]
        patch = '{"spec":{"settings":{"replicas":3}}}'
        web = ("applications.wharfinger.dev", "web", "--namespace=demo")
        self.show("kubectl", "patch", *web, "--type=merge", f"--patch={patch}")

        def applied() -> bool:
            ready = progress.all_ready()
            return ready and since(progress.latest["demo.web"], "ManifestsApplied") != since(before, "ManifestsApplied")

        self.await_it("demo.web is configured anew, and Ready", applied)
        after = progress.latest["demo.web"]
        for stage in ("ReadyOnFilesystem", "Loaded"):
            if since(after, stage) != since(before, stage) or stage in progress.moved["demo.web"]:
                raise DemoError(f"demo.web went through {stage} again, although only settings changed")
            print(f"  {'demo.web':<20}{stage:<19}as it was since {since(after, stage)}")
        print(f"stages it went through: {', '.join(progress.moved['demo.web'])}")
        columns = "custom-columns=NAME:.metadata.name,WANTED:.spec.replicas,READY:.status.readyReplicas"
        replicas = self.show("kubectl", "get", "deployment", "web", "--namespace=demo", f"--output={columns}")
        if replicas.split()[-3:] != ["web", "3", "3"]:
            raise DemoError("the Deployment does not have the three replicas that the settings ask for")

    def ask_helm_and_the_daemon(self) -> None:
        """Show the releases as Helm lists them, and the daemon's answers to commands over its debug socket."""
        title("Helm sees the releases")
        listed = self.show("helm", "list", "--all-namespaces")
        deployed = {line.split()[0] for line in listed.splitlines() if "\tdeployed\t" in line}
        if missing := {name.rpartition(".")[2] for name in INSTALLED} - deployed:
            raise DemoError(f"helm does not list these as deployed: {', '.join(sorted(missing))}")
        history = self.show("helm", "history", "web", "--namespace=demo")
        if "Upgrade complete" not in history:
            raise DemoError("helm's history of web has one revision only")
        title("The daemon reports what it is doing")
        self.show(*WHARFINGER, "get", "packages", "--output", "wide")
        self.show(*WHARFINGER, "dump", "demo.reload")
        self.show(*WHARFINGER, "queues", "dump")
        self.show(*WHARFINGER, "scheduler", "dump", "namespace-defaults")
        self.show(*WHARFINGER, "render", "demo.reload")

    def delete_everything(self, before: set[str]) -> None:
        """Delete everything, and check that nothing that the packages created is left, except objects that are kept on
        purpose.
        """
        title("Everything is deleted, and nothing of it is left")
        timeout = f"--timeout={PATIENCE_S}s"
        self.show("kubectl", "delete", "applications.wharfinger.dev", "--all", "--namespace=demo", timeout)
        self.show("kubectl", "delete", "modules.wharfinger.dev", "namespace-defaults", timeout)
        self.show("kubectl", "delete", "packagerepositories.wharfinger.dev", "default", timeout)
        self.show("kubectl", "delete", "configmap", "page", "--namespace=demo", timeout)
        self.show("kubectl", "delete", "namespace", "team", timeout)

        def left() -> list[str]:
            return sorted(each for each in self.objects() - before if not KEPT.fullmatch(each))

        try:
            self.await_it("all objects are gone", lambda: not left())
        except DemoError as error:
            raise DemoError(f"left behind: {', '.join(left())}\n{error}") from error
        self.show("kubectl", "get", "secrets", "--all-namespaces")
        self.show("kubectl", "get", "persistentvolumeclaims", "--all-namespaces")
        print("the database's claim is kept, because Helm and Kubernetes keep data; this command deletes it:")
        self.show("kubectl", "delete", "namespace", "demo", timeout)
        packages = self.show(*WHARFINGER, "get", "packages", "--output", "name")
        deployed = sorted(path.name for path in (self.state / "deployed").iterdir())
        trees = sorted(path.name for path in (self.state / "store" / "trees").iterdir())
        if packages.strip() or deployed or trees:
            raise DemoError(f"left behind: packages {packages.split()}, deployed {deployed}, trees {trees}")
        print("nothing is left")

    def objects(self) -> set[str]:
        """Return every object of the cluster as ``Kind namespace/name``, except events and leases, which change by themselves."""
        kinds = self.quiet("kubectl", "api-resources", "--verbs=list,delete", "--output=name").split()
        asked = ",".join(kind for kind in kinds if not kind.startswith(("events", "leases.")))
        listed = json.loads(self.quiet("kubectl", "get", asked, "--all-namespaces", "--output=json"))
        found = cast("list[dict[str, object]]", listed["items"])
        metadata = [cast("dict[str, str]", each["metadata"]) for each in found]
        return {
            f"{each['kind']} {meta.get('namespace', '')}/{meta['name']}".replace(" /", " ")
            for each, meta in zip(found, metadata, strict=True)
        }

    def stay(self, daemon: subprocess.Popen[bytes]) -> None:
        """Wait for Ctrl-C. If the daemon is killed, start it again, as a service manager would.

        Raises DemoError if the daemon exits by itself.
        """
        title("Everything stays up until Ctrl-C; in another shell")
        for name in ("KUBECONFIG", "WHARFINGER_SOCKET"):
            print(f"  export {name}={shlex.quote(self.environment[name])}")
        print(f"  export REGISTRY={self.registry} DAEMON_PID={daemon.pid}")
        print(f"  export DAEMON_LOG={shlex.quote(str(self.folder / 'daemon.log'))}")
        print(f"  export PATH={shlex.quote(':'.join(program_folders()))}:$PATH")
        title("A folder can be installed, too; in the checkout")
        print("  wharfinger install examples/web-service --name mine", flush=True)
        while (code := daemon.wait()) < 0:
            print(f"the daemon was ended by signal {-code}; it is started again", flush=True)
            daemon = self.start_daemon()
            print(f"the daemon is up again, with DAEMON_PID={daemon.pid}", flush=True)
        raise DemoError(f"the daemon exited with {code}{last_lines(self.log)}")

    def await_it(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until ``holds()`` is true. ``what`` describes this condition in messages. Raises DemoError."""
        await_that(holds, what=what, process=self.running, log=self.log)

    def show(self, *command: str) -> str:
        """Run a command, print it with its output, and return the output. Raises DemoError if it fails."""
        print(f"$ {' '.join(shown(command))}", flush=True)
        output = self.quiet(*command)
        print(output.removesuffix("\n") or "(nothing)", flush=True)
        return output

    def quiet(self, *command: str) -> str:
        """Run a command, and return its standard output. Raises DemoError if it fails."""
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=2 * PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DemoError(
                f"`{' '.join(command)}` did not end within {2 * PATIENCE_S} s{last_lines(self.log)}"
            ) from error
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise DemoError(f"`{' '.join(command)}` exited {done.returncode}: {said}{last_lines(self.log)}")
        return done.stdout


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}", flush=True)


def shown(command: list[str] | tuple[str, ...]) -> list[str]:
    """Return a command as a user would type it."""
    words = ["wharfinger", *command[3:]] if list(command[:3]) == WHARFINGER else list(command)
    return [shlex.quote(word) for word in words]


if __name__ == "__main__":
    sys.exit(main())
