"""The main job, shown: a chart goes to a real registry, an Application through real kubectl, and comes out Ready.

Run by ``make demo`` (and ``make run``, which stays). Everything is real: docker-registry, helm, kubectl, the control plane and
the daemon are child processes on loopback, and all state is in a temporary folder that is removed at the end. Each step
prints the command it runs; the exit code is 0 only if every step did what it should.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, cast

ROOT = Path(__file__).resolve().parent.parent
WHARFINGER = [sys.executable, "-m", "wharfinger"]
NAMESPACE = "demo"
READY_WITHIN_S = 120
STOPS_WITHIN_S = 30


class DemoError(Exception):
    """A step did not do what it should."""


class Stopped(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP ends the demo; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> int:
    """Run the demo; 0 if every step held."""
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
    except DemoError as error:
        print(f"\ndemo: failed: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print("\ndemo: stopped", file=sys.stderr)
        return 0 if args.stay else 128 + stopped.number
    print(f"\ndemo: done in {time.monotonic() - started:.0f} s, everything as it should be")
    return 0


class Signals:
    """How the demo ends early: the first signal unwinds it, each further one kills what has not ended yet.

    While it unwinds no signal raises, so nothing can keep it from ending the children and removing the folder with the token.
    """

    def __init__(self) -> None:
        self.children = ExitStack()
        self.unwinding = False
        self._running: list[subprocess.Popen[bytes]] = []
        self._starting = False
        self._kept: int | None = None

    def catch(self) -> None:
        """From now on, to the end of the process. SIGHUP stays ignored under nohup."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._came)

    def start(self, command: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """A child process that ends with the demo; a signal waits until it is on the list of those to end."""
        self._starting = True
        try:
            process = self.children.enter_context(background(command, log, environment))
            self._running.append(process)
        finally:
            self._starting = False
        if self._kept is not None:
            self._came(self._kept, None)
        return process

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if self._starting:
            self._kept = number
        elif self.unwinding:
            for process in self._running:
                kill_group(process)
        else:
            self.unwinding = True
            raise Stopped(number)


class Demo:
    """The steps, in order."""

    def __init__(self, folder: Path, signals: Signals) -> None:
        self.folder = folder
        self.signals = signals
        self.kubeconfig = folder / "control-plane" / "kubeconfig"
        self.socket = folder / "state" / "run" / "debug.sock"
        self.registry = ""
        self.environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HELM_CACHE_HOME": str(folder / "helm"),
                            "HELM_CONFIG_HOME": str(folder / "helm"), "HELM_DATA_HOME": str(folder / "helm"),
                            "WHARFINGER_SOCKET": str(self.socket), "WHARFINGER_STATE_DIR": str(folder / "state")}  # fmt: skip

    def run(self, *, stay: bool) -> None:
        """From nothing to Ready, and, unless it stays, back to nothing."""
        title("A registry, a control plane and the daemon: three processes on loopback")
        self.start_registry()
        self.start_control_plane()
        daemon = self.start_daemon()
        title("The package is pushed")
        self.show(*WHARFINGER, "package", "push", "examples/web-service", f"{self.registry}/packages/web-service:1.0.0",
                  "--plain-http")  # fmt: skip
        title("An Application is applied with kubectl, and taken to Ready")
        self.show("kubectl", "create", "namespace", NAMESPACE)
        self.apply_application()
        self.show_progress()
        self.show("kubectl", "get", "applications,deployments,services,configmaps", "--namespace", NAMESPACE)
        title("Helm sees the release")
        listed = self.show("helm", "list", "--namespace", NAMESPACE)
        if "web" not in listed or "deployed" not in listed:
            raise DemoError("helm does not list the release as deployed")
        title("The daemon says what it is doing")
        self.show(*WHARFINGER, "get", "packages")
        self.show(*WHARFINGER, "dump", f"{NAMESPACE}.web")
        if stay:
            self.stay(daemon)
            return
        title("The Application is deleted, and nothing of it is left")
        self.show("kubectl", "delete", "application", "web", "--namespace", NAMESPACE, "--timeout=60s")
        self.check_nothing_left()
        title("SIGTERM: the daemon drains and exits")
        stop(daemon, "daemon")
        print("daemon: exit 0")

    def start_registry(self) -> None:
        """A real docker-registry on a free port."""
        port = free_port()
        config = self.folder / "registry.yml"
        config.write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.folder}/registry}}}}\n"
            f"http: {{addr: '127.0.0.1:{port}'}}\n"
        )
        binary = shutil.which("docker-registry")
        if binary is None:
            raise DemoError("docker-registry is not installed; run `make setup` as root")
        process = self.signals.start([binary, "serve", str(config)], self.folder / "registry.log", self.environment)
        await_port(port, process)
        self.registry = f"127.0.0.1:{port}"
        print(f"registry at {self.registry}")

    def start_control_plane(self) -> None:
        """The embedded control plane: `wharfinger control-plane`."""
        log = self.folder / "control-plane.log"
        command = [*WHARFINGER, "control-plane", "--kubeconfig", str(self.kubeconfig)]
        process = self.signals.start(command, log, self.environment)
        await_that(lambda: self.kubeconfig.exists() and "ready at" in log.read_text(), process, "control plane", log)
        print(log.read_text().strip().splitlines()[0])

    def start_daemon(self) -> subprocess.Popen[bytes]:
        """`wharfinger run` against that control plane."""
        log = self.folder / "daemon.log"
        process = self.signals.start([*WHARFINGER, "run"], log, self.environment)
        await_that(lambda: "ready:" in log.read_text(), process, "daemon", log)
        print(log.read_text().strip().splitlines()[-1])
        return process

    def apply_application(self) -> None:
        """Real kubectl, real manifests."""
        template = (ROOT / "examples" / "application.yaml").read_text()
        manifest = self.folder / "application.yaml"
        manifest.write_text(
            template.replace("registry.example/packages", f"{self.registry}/packages").replace(
                "scheme: HTTPS", "scheme: HTTP"
            )
        )
        print(manifest.read_text())
        self.show("kubectl", "apply", "--namespace", NAMESPACE, "--filename", str(manifest))

    def show_progress(self) -> None:
        """One line for each state the package goes through, until it is Ready."""
        seen = ""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            text = self.quiet("kubectl", "get", "application", "web", "--namespace", NAMESPACE, "--output=json")
            status = cast("dict[str, dict[str, dict[str, str]]]", json.loads(text)).get("status", {})
            summary = status.get("summary", {})
            line = f"{summary.get('state', 'Unknown')}: {summary.get('message', 'no status yet')}"
            if line != seen:
                print(f"  {line}" + (f"  (tip: {summary['tip']})" if summary.get("tip") else ""), flush=True)
                seen = line
            if summary.get("state") == "Ready":
                self.show(
                    "kubectl",
                    "wait",
                    "--for=condition=Ready",
                    "application/web",
                    "--namespace",
                    NAMESPACE,
                    "--timeout=10s",
                )
                return
            time.sleep(0.2)
        raise DemoError(
            f"not Ready within {READY_WITHIN_S} s; last: {seen}\n{(self.folder / 'daemon.log').read_text()[-4000:]}"
        )

    def check_nothing_left(self) -> None:
        """No object of the release, no release record, no package in the daemon, nothing deployed on disk."""
        left = self.show("kubectl", "get", "deployments,services,configmaps,secrets,serviceaccounts", "--namespace", NAMESPACE,
                         "--selector=app.kubernetes.io/managed-by=Helm", "--output=name")  # fmt: skip
        records = self.show(
            "kubectl", "get", "secrets", "--namespace", NAMESPACE, "--selector=owner=helm", "--output=name"
        )
        packages = self.show(*WHARFINGER, "get", "packages", "--output", "name")
        deployed = sorted(path.name for path in (self.folder / "state" / "deployed").iterdir())
        if left.strip() or records.strip() or packages.strip() or deployed:
            raise DemoError(f"left behind: {left} {records} {packages} {deployed}")
        print("nothing is left")

    def stay(self, daemon: subprocess.Popen[bytes]) -> None:
        """Wait for Ctrl-C. Raises DemoError if the daemon ends before it."""
        title("Everything stays up until Ctrl-C; in another shell")
        for name in ("KUBECONFIG", "WHARFINGER_SOCKET"):
            print(f"  export {name}={shlex.quote(self.environment[name])}", flush=True)
        raise DemoError(f"the daemon exited with {daemon.wait()}:\n{(self.folder / 'daemon.log').read_text()[-4000:]}")

    def show(self, *command: str) -> str:
        """Run a command and show it; its output. Raises DemoError if it fails."""
        shown = ["wharfinger", *command[3:]] if list(command[:3]) == WHARFINGER else list(command)
        print(f"$ {' '.join(shown)}", flush=True)
        output = self.quiet(*command)
        print(output, end="" if output.endswith("\n") or not output else "\n", flush=True)
        return output

    def quiet(self, *command: str) -> str:
        """Run a command; its standard output. Raises DemoError if it fails."""
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            log = (self.folder / "daemon.log").read_text()[-3000:] if (self.folder / "daemon.log").exists() else ""
            raise DemoError(f"`{' '.join(command)}` exited {done.returncode}: {done.stderr.strip()}\n{log}")
        return done.stdout


@contextmanager
def background(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child process for as long as the body runs; stopped with SIGTERM, killed with its group if that takes long."""
    output: IO[bytes]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                kill_group(process)
                process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a child that is not known to have ended, and for its group (it leads one)."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def stop(process: subprocess.Popen[bytes], name: str) -> None:
    """SIGTERM, then exit code 0 within STOPS_WITHIN_S."""
    process.terminate()
    try:
        code = process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise DemoError(f"the {name} did not end within {STOPS_WITHIN_S} s of SIGTERM") from error
    if code != 0:
        raise DemoError(f"the {name} exited with {code}")


def title(text: str) -> None:
    """A heading."""
    print(f"\n== {text}", flush=True)


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until something listens."""

    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await_that(listening, process, "registry", None)


def await_that(condition: Callable[[], bool], process: subprocess.Popen[bytes], name: str, log: Path | None) -> None:
    """Wait (up to 60 s) until a condition holds; DemoError if the process ends first."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DemoError(f"the {name} exited with {process.returncode}:\n{log.read_text() if log else ''}")
        if condition():
            return
        time.sleep(0.05)
    raise DemoError(f"the {name} did not come up within 60 s:\n{log.read_text() if log else ''}")


if __name__ == "__main__":
    sys.exit(main())
