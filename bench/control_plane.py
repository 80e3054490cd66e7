"""The control plane under load: a real server process on one core, and a real load process on another.

The server is ``wharfinger control-plane`` with all of its controllers, limited to one core. The load is a plain loop over
sockets: it creates and lists objects, opens watches, and then writes at a steady rate on 32 connections. A write is timed from
the moment at which it was due and not from the moment at which it was sent, so a server that stalls cannot improve its own
figures. This module can also be run alone: ``python -m bench.control_plane --help`` lists its options.
"""

import argparse
import base64
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench.control_plane_load import PATIENCE_S, Figures, Load
from bench.measure import Ratio, Unit

RATE: Final = 1_000
"""Writes per second: half of the highest rate that the server can sustain on one slow core."""
OBJECTS: Final = 20_000
FEW: Final = 5_000
"""The number of objects without ``--long``. The cost of a write does not depend on this number."""
WATCHERS: Final = 50
P99_S: Final = 0.025
MEMORY: Final = 3.0
"""The highest allowed growth of the server's resident memory, in bytes for each stored byte."""
SHORT_S: Final = 3.0
LONG_S: Final = 30.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Result:
    """The results of one run, with sizes in bytes and times in seconds."""

    load: Figures
    cpu_per_write: float
    busy: float
    rss_empty: int
    rss_full: int
    rss_end: int

    @property
    def growth(self) -> float:
        """The maximum growth of the server's resident memory, in bytes for each stored byte."""
        return (max(self.rss_full, self.rss_end) - self.rss_empty) / self.load.stored_bytes


def measure(long: bool) -> Iterator[Ratio]:
    """Measure the processor time and the latency of writes, and with ``long`` the server's memory, against fixed limits."""
    objects = OBJECTS if long else FEW
    part, server = "control_plane", f"{WATCHERS} watches, {objects} objects"
    for data in (False, True):
        where = "on disk" if data else "in memory"
        result = run(
            Load(rate=RATE, seconds=LONG_S if long else SHORT_S, objects=objects, watchers=WATCHERS), data=data
        )
        yield Ratio(
            part, f"a write {where}, {server}", f"a core at {RATE} writes/s", result.cpu_per_write, 1 / RATE, 1.0
        )
        yield Ratio(part, f"slowest 1 % of writes {where}", "25 ms", result.load.p99, P99_S, 1.0)
        if long:  # With few objects, the growth is mostly due to the watches and first requests.
            yield Ratio(part, f"memory for each byte {where}", "1 byte", result.growth, 1, MEMORY, Unit.BYTES)


def run(load: Load, *, data: bool, profile: str = "") -> Result:
    """Run a load against a new server. With ``data``, the server stores its objects in a file.

    ``profile`` names a file to which py-spy writes a profile of the server during the writes.
    """
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder), data=data) as (pid, port, token):
        empty = _rss(pid)
        with _load(load, port, token) as child:
            assert child.stdout is not None
            line = child.stdout.readline()
            if not line:
                raise RuntimeError("the load process ended before it was prepared")
            full, before, start = _rss(pid), _cpu(pid), time.monotonic()
            spy = _spy(pid, profile, load.seconds) if profile else None
            child.stdout.readline()
            cpu, wall = _cpu(pid) - before, time.monotonic() - start
            if spy is not None:
                spy.wait(PATIENCE_S)
            end = _rss(pid)
            figures = msgspec.json.decode(child.stdout.read(), type=Figures)
    return Result(figures, cpu / max(figures.writes, 1), cpu / wall, empty, full, end)


@contextmanager
def _server(folder: Path, *, data: bool) -> Iterator[tuple[int, int, str]]:
    token = "t" * 32
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    command = [sys.executable, "-m", "wharfinger", "control-plane", "--no-tls", "--until-stdin-ends"]
    command += ["--kubeconfig", str(folder / "kubeconfig"), "--token-file", str(folder / "token")]
    command += ["--data", str(folder / "data.db")] if data else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            ready = child.stdout.readline()
            os.sched_setaffinity(child.pid, {min(os.sched_getaffinity(0))})
            port = int(ready.partition(",")[0].rpartition(":")[2])
            yield child.pid, port, token
        finally:
            child.stdin.close()
            child.wait(PATIENCE_S)


@contextmanager
def _load(load: Load, port: int, token: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "bench.control_plane_load", str(port), token]
    given = base64.b64encode(msgspec.json.encode(asdict(load))).decode()
    with subprocess.Popen([*command, given], stdout=subprocess.PIPE, text=True) as child:
        os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(0))})
        yield child


def _spy(pid: int, path: str, seconds: float) -> "subprocess.Popen[bytes]":
    command = ["py-spy", "record", "-p", str(pid), "-o", path, "-d", str(int(seconds)), "-f", "raw", "-r", "200"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> int:
    """Run one load with the options of the command line, and print all of its figures."""
    parser = argparse.ArgumentParser(description="Put a control plane under load, and print its cost.")
    parser.add_argument("--rate", type=int, default=RATE, help="writes per second; 0: as many as the server answers")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--watchers", type=int, default=WATCHERS)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--verb", choices=("put", "patch", "create", "mixed"), default="put")
    parser.add_argument("--data", action="store_true", help="keep the state in a file")
    parser.add_argument(
        "--profile", default="", metavar="FILE", help="write a profile of the server by py-spy to this file"
    )
    args = parser.parse_args()
    load = Load(args.rate, args.seconds, args.objects, args.watchers, args.connections, args.verb)
    result = run(load, data=args.data, profile=args.profile)
    figures = result.load
    stored = figures.stored_bytes
    print(
        f"writes      {figures.writes} ({figures.writes / load.seconds:.0f}/s), {figures.failures} failed, {args.verb}"
    )
    print(
        f"latency     p50 {figures.p50 * 1e3:.1f} ms, p99 {figures.p99 * 1e3:.1f} ms, most {figures.most * 1e3:.1f} ms"
    )
    print(f"server      {result.cpu_per_write * 1e6:.0f} us of CPU per write, {result.busy:.0%} of one core")
    print(
        f"events      {figures.events} ({figures.event_bytes / 2**20:.0f} MiB) in {load.watchers} watches, "
        f"{figures.watches_cut} cut, last event after the last write: {figures.lag * 1e3:.0f} ms"
    )
    print(
        f"lists       {figures.pages} pages, {figures.page_bytes / 2**20:.1f} MiB, p99 {figures.page_p99 * 1e3:.1f} ms"
    )
    for name, rss in (("empty", result.rss_empty), ("full", result.rss_full), ("end", result.rss_end)):
        growth = (rss - result.rss_empty) / stored
        print(f"RSS {name:<8}{rss / 2**20:.0f} MiB, {rss / stored:.2f} bytes per stored byte, growth {growth:.2f}")
    print(f"stored      {stored / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
