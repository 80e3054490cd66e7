"""The harness that runs a reader on many inputs in child processes, and reports the input that broke the reader."""

import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.formats.support.fuzz_inputs import make_input
from tests.formats.support.fuzz_readers import BAD_TARGETS, TARGETS
from tests.programs import ROOT

_ROOT = ROOT
_BATCH = 20_000
_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class FuzzReport:
    """The numbers of accepted and refused inputs."""

    accepted: int
    refused: int


class FuzzFinding(AssertionError):  # noqa: N818 - the usual word for fuzzers
    """A reader failed. ``kind`` is crash, hang, memory or exception, and ``data`` is the input."""

    def __init__(self, target: str, seed: int, index: int, kind: str, detail: str) -> None:
        self.kind = kind
        self.index = index
        self.data = make_input((TARGETS | BAD_TARGETS)[target].corpus, seed, index)
        shown = repr(self.data[:_SHOWN]) + ("..." if len(self.data) > _SHOWN else "")
        super().__init__(
            f"{target}: {kind} at input {index} of seed {seed} ({len(self.data)} bytes): {detail}\n{shown}\n"
            f"to see it again: python -m tests.formats.support.fuzz_child {target} {seed} {index} {index + 1}"
        )


def fuzz(target: str, *, count: int, seed: int, cpu_seconds: float = 10.0) -> FuzzReport:
    """Run ``count`` inputs. Raises FuzzFinding for the first input that breaks the reader."""
    accepted = refused = 0
    for first in range(0, count, _BATCH):
        report = _batch(target, seed, first, min(first + _BATCH, count), cpu_seconds)
        accepted += report.accepted
        refused += report.refused
    return FuzzReport(accepted, refused)


def _batch(target: str, seed: int, first: int, last: int, cpu_seconds: float) -> FuzzReport:
    with tempfile.NamedTemporaryFile() as progress:
        progress.write(first.to_bytes(8, "little"))
        progress.flush()
        numbers = [str(seed), str(first), str(last)]
        child = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.formats.support.fuzz_child",
                target,
                *numbers,
                progress.name,
                str(cpu_seconds),
            ],
            cwd=_ROOT,
            capture_output=True,
            check=False,
        )
        index = int.from_bytes(Path(progress.name).read_bytes()[:8], "little")
    said = _last_line(child.stdout)
    if said.get("kind") == "done" and child.returncode == 0:
        return FuzzReport(int(said["accepted"]), int(said["refused"]))
    if "index" in said:
        raise FuzzFinding(target, seed, int(said["index"]), str(said["kind"]), str(said["detail"]))
    errors = child.stderr.decode("utf-8", "replace")[-2000:]
    if child.returncode >= 0:
        raise FuzzFinding(target, seed, index, "crash", f"the process ended with {child.returncode}\n{errors}")
    name = signal.Signals(-child.returncode).name
    kind = "hang" if name in {"SIGPROF", "SIGXCPU"} else "crash"
    raise FuzzFinding(target, seed, index, kind, f"the process was killed by {name}\n{errors}")


def _last_line(stdout: bytes) -> dict[str, str | int]:
    lines = stdout.decode("utf-8", "replace").splitlines()
    found: dict[str, str | int] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    return found
