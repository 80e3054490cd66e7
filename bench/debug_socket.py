"""The debug socket under attack: the processor time and the memory that attackers can take from the daemon.

The attackers are one process that never pauses. In the first rows, the daemon has no other work, so all of its processor time
is spent on the attackers. During each attack, another client sends one request.

In the last row, the daemon also has work of its own. It does the same amount of this work several times, alternately under
attack and without an attack. One repetition is called a *turn*. The row has the median of the ratios between two consecutive
turns. In the turns without an attack, the attackers run as well, but connect to a socket on which no process listens. So the
competition for caches and cores is the same in both turns.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from bench.measure import Ratio, Unit
from tests.debug.support.attack import SLOW, attack
from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES
from tests.debug.support.socket_client import socket_client
from wharfinger.debug.encoding.package import packages_to_json
from wharfinger.debug.printing.output import render
from wharfinger.debug.server.server import open_debug_server

SHARE: Final = 0.05
"""The share of a core that attackers may take."""
SECONDS: Final = 3.0
ROUNDS: Final = 3
MOST_SLOWDOWN: Final = 1.05
TURN_S: Final = 0.3
"""The processor time that the daemon's own work takes in one turn."""
PAIRS: Final = 5


def measure(long: bool) -> Iterator[Ratio]:
    """Measure how attacks on the debug socket affect the daemon and other clients. Each measurement begins with its attack."""
    yield from trio.run(_measure, 3 * ROUNDS if long else ROUNDS)


async def _measure(rounds: int) -> list[Ratio]:
    shares, waits = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        async with open_debug_server(path, CannedInspector()):
            await answer_time(path)
            before = memory()
            for _ in range(rounds):
                with attack(path):
                    shares.append(await share_of_core(SECONDS))
                    waits.append(await answer_time(path))
            after = memory()
            slowdown = statistics.median(await slowdowns(path, PAIRS * rounds // ROUNDS))
    what = f"{SLOW} attackers: processor time of a second"
    return [
        Ratio("debug_socket", what, f"{SHARE} of a core", statistics.median(shares), SHARE, 1.0),
        Ratio(
            "debug_socket",
            f"{SLOW} attackers: time to answer another client",
            "2 s",
            statistics.median(waits),
            2.0,
            1.0,
        ),
        Ratio("debug_socket", f"{SLOW} attackers: memory afterwards", "memory before", after, before, 1.2, Unit.BYTES),
        Ratio(
            "debug_socket",
            f"{SLOW} attackers: 1 s of the daemon's own work",
            "without attack",
            slowdown,
            1.0,
            MOST_SLOWDOWN,
        ),
    ]


async def slowdowns(path: Path, pairs: int) -> list[float]:
    """Return, for each pair of turns, the time of the daemon's own work under attack divided by the time without an attack.

    The ratios are computed as if the daemon had a core to itself. The server allows the attackers a share of each second. On a
    busy machine, a turn takes more seconds, so the attackers use more processor time in it. Therefore the additional processor
    time is divided by the duration of the turn under attack.
    """
    units, found = await units_of(TURN_S), list[float]()
    for number in range(pairs):
        cost, passed = dict[Path, float](), dict[Path, float]()
        elsewhere = path.with_name("nobody")
        for where in (path, elsewhere) if number % 2 else (elsewhere, path):
            with attack(where):
                await trio.sleep(0.05)  # The attackers are active before the turn begins.
                began, clock = time.process_time(), time.monotonic()
                await own_work(units)
                cost[where], passed[where] = time.process_time() - began, time.monotonic() - clock
            await answer_time(path)  # This removes what the attackers have left behind.
        share = (cost[path] - cost[elsewhere]) / passed[path]
        found.append(1 / (1 - share))
    return found


async def own_work(units: int) -> None:
    """Do some units of the daemon's own work. The event loop runs after each unit."""
    for _ in range(units):
        render(packages_to_json(PACKAGES), "json")
        await trio.lowlevel.checkpoint()


async def units_of(seconds: float) -> int:
    """Return the number of units for which :func:`own_work` needs ``seconds`` of processor time."""
    sample = 100
    await own_work(sample)
    began = time.process_time()
    await own_work(sample)
    return max(round(sample * seconds / (time.process_time() - began)), 1)


async def share_of_core(seconds: float) -> float:
    """Return the share of a core that this process uses in the next seconds."""
    cost, began = time.process_time(), time.monotonic()
    await trio.sleep(seconds)
    return (time.process_time() - cost) / (time.monotonic() - began)


async def answer_time(path: Path) -> float:
    """Send a request as a client, and return the time until the answer."""
    began = time.monotonic()
    await socket_client(path).daemon()
    return time.monotonic() - began


def memory() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
