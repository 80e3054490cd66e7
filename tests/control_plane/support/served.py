"""The control plane as users run it: in a separate process, and with real clients that use its kubeconfig."""

import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.packages.support.charts import tool
from tests.programs import Program, attempt, program, run, wharfinger
from wharfinger.formats.json.value import decode_json, find_str

READY = "control plane ready at https://127.0.0.1:"


@dataclass(frozen=True, slots=True)
class Served:
    """A control plane's process, its kubeconfig, and a home folder for its clients."""

    process: Program
    kubeconfig: Path
    home: Path

    def run(self, name: str, *arguments: str) -> str:
        """Run a client program to its end, and return its standard output. Raises AssertionError if it fails."""
        return run(str(tool(name)), *arguments, env=self._environment)

    def refused(self, name: str, *arguments: str) -> str:
        """Run a client program that must fail, and return its error output."""
        done = attempt(str(tool(name)), *arguments, env=self._environment)
        assert done.returncode != 0, f"{name} {' '.join(arguments)} worked: {done.stdout}"
        return done.stderr

    @property
    def trust(self) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the certificate authority in the kubeconfig."""
        document = decode_json(self.kubeconfig.read_bytes(), max_bytes=65536, what="the kubeconfig")
        authority = find_str(document, "clusters", 0, "cluster", "certificate-authority-data")
        return ssl.create_default_context(cadata=base64.b64decode(authority).decode())

    @property
    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    """Run ``wharfinger control-plane`` on a free port, and yield it as `Served` once it is ready."""
    kubeconfig = folder / "state" / "kubeconfig"
    with program(*wharfinger("control-plane", "--kubeconfig", str(kubeconfig), *arguments)) as process:
        process.wait_line(READY)
        yield Served(process, kubeconfig, folder)
