"""A scripted session with a real daemon, which has its own control plane and a package with hooks and secrets."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from tests.debug.support.golden import transcript_of
from tests.programs import PATIENCE_S, ROOT, Program, attempt, wharfinger
from tests.runtime.support.killing import Kubectl, embedded_daemon
from tests.runtime.tasks.test_hook_runs import bash, hooked

SETTING: Final = "planted-setting-7Q"
IN_SECRET: Final = "planted-secret-4W"
LOGIN: Final = "planted-login-9K"
PRINTED: Final = "planted-output-2M"
OF_DAEMON: Final = "planted-environment-8R"
SECRETS: Final = (SETTING, IN_SECRET, LOGIN, PRINTED, OF_DAEMON)
"""Secrets in settings, in a Secret's manifest, in a registry's login, in a hook's output, and in the daemon's environment."""

_SETTINGS: Final = (
    "type: object\nproperties:\n  mode: {type: string, default: calm}\n  replicas: {type: integer, default: 1}\n"
    "  apiToken: {type: string, default: '', writeOnly: true}\n"
)
_VALUES: Final = "x-extend: {schema: settings.yaml}\ntype: object\n"
_OUT: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: out, labels: {app: shop}}
data: {mode: {{ .Values.mode | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "registry.example/web:1"}]
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: IN_SECRET, token: {{ .Values.apiToken | quote }}}
"""
_HOOK: Final = bash(
    "configVersion: v1\nonStartup: 5\nkubernetes:\n"
    '- {name: maps, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {app: shop}}, jqFilter: ".data", '
    "executeHookOnEvent: []}\n"
    '- {name: logins, apiVersion: v1, kind: Secret, labelSelector: {matchLabels: {look: "here"}}, jqFilter: ".data", '
    "executeHookOnEvent: []}\n",
    f'echo "hello password={PRINTED}"; printf "\\033[31mred\\n"; env | grep -c PLANTED || true',
)
_MANIFEST: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: seen, namespace: default, labels: {look: here}}
stringData: {password: IN_SECRET}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: default}
stringData: {username: u, password: LOGIN}
---
apiVersion: wharfinger.dev/v1alpha1
kind: PackageRepository
metadata: {name: private, labels: {tier: test}}
spec: {registry: {repo: "127.0.0.1:9/packages", scheme: HTTP, credentialsSecret: {name: registry, namespace: default}}}
---
apiVersion: wharfinger.dev/v1alpha1
kind: PackageRepository
metadata: {name: default}
spec: {folder: {path: FOLDER}}
---
apiVersion: wharfinger.dev/v1alpha1
kind: Application
metadata: {name: shop, namespace: default, labels: {team: web}}
spec: {packageName: shop, packageVersion: 1.0.0, settings: {apiToken: SETTING}}
"""


@dataclass(frozen=True, slots=True)
class Session:
    """A running daemon, and its package ``default.shop``, which is ready."""

    folder: Path
    kubectl: Kubectl
    daemon: Program
    """The daemon, which logs at level debug."""
    traces: list[bytes]
    """The traces that a receiver got from the daemon."""

    @property
    def socket(self) -> Path:
        """Return the path of the daemon's socket."""
        return self.folder / "state" / "run" / "debug.sock"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables by which commands find the daemon and its cluster."""
        kubeconfig = self.folder / "state" / "embedded" / "kubeconfig"
        return {"WHARFINGER_SOCKET": str(self.socket), "KUBECONFIG": str(kubeconfig)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command of wharfinger."""
        return attempt(*wharfinger(*words), env={**self.environment, "NO_COLOR": ""})

    def in_terminal(self, *words: str, columns: int = 100) -> tuple[int, str]:
        """Run one command of wharfinger in a terminal. Return its exit code and all output that the terminal received."""
        environment = {**os.environ, **self.environment, "COLUMNS": str(columns)}
        environment.pop("NO_COLOR", None)
        ours, its_end = pty.openpty()
        try:
            process = subprocess.Popen(
                wharfinger(*words), stdin=its_end, stdout=its_end, stderr=its_end, env=environment, cwd=ROOT
            )
            os.close(its_end)
            received, end = b"", time.monotonic() + PATIENCE_S
            while True:
                ready, _, _ = select.select([ours], [], [], max(end - time.monotonic(), 0.0))
                assert ready, received
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                received += piece
            return process.wait(PATIENCE_S), received.decode()
        finally:
            os.close(ours)


@contextmanager
def _receiver() -> Iterator[tuple[str, list[bytes]]]:
    """Receive traces over HTTP on loopback. Yield the address, and the list of the received bodies."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def open_session(folder: Path) -> Iterator[Session]:
    """Start a daemon, install the package, wait until it is ready, and yield the session."""
    files = {
        "openapi/settings.yaml": _SETTINGS,
        "openapi/values.yaml": _VALUES,
        "templates/out.yaml": _OUT.replace("IN_SECRET", IN_SECRET),
    }
    hooked(folder / "packages" / "shop", {"a.sh": _HOOK}, name="shop", files=files)
    os.environ["PLANTED_TOKEN"] = OF_DAEMON
    try:
        options = ("--local-packages", str(folder / "packages"), "--flight-recorder", str(folder / "flight"))
        with (
            _receiver() as (endpoint, traces),
            embedded_daemon(
                folder, *options, "--log-level", "debug", "--engine", "none", "--otlp-endpoint", endpoint
            ) as daemon,
        ):
            daemon.wait_line(" ready: ")
            session = Session(folder, Kubectl(folder / "state" / "embedded" / "kubeconfig"), daemon, traces)
            manifest = _MANIFEST.replace("FOLDER", str(folder / "packages"))
            for word, text in (("IN_SECRET", IN_SECRET), ("LOGIN", LOGIN), ("SETTING", SETTING)):
                manifest = manifest.replace(word, text)
            session.kubectl.apply(folder / "manifest.yaml", manifest)
            done = session.run("wait", "default.shop", "--for", "ready", "--timeout", "5m")
            assert done.returncode == 0, (done.stdout, done.stderr, daemon.lines)
            yield session
    finally:
        del os.environ["PLANTED_TOKEN"]


def transcript(session: Session, commands: Sequence[str]) -> str:
    """Return the output of commands, with their exit codes."""
    return transcript_of(commands, session.run, session.folder)
