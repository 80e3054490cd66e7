"""The debug socket under attack: the processor time and the memory that attackers can take from the daemon.

The attackers are a process that never pauses. The daemon does nothing else meanwhile, so all of its processor time is work for
them. A daemon that is busy wakes up less often for them, and so loses less. A well-behaved client asks now and then.
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
from tests.debug.support.socket_client import socket_client
from wharfinger.debug.server.server import open_debug_server

SHARE: Final = 0.05
"""The share of a core that attackers may take."""
SECONDS: Final = 3.0
ROUNDS: Final = 3


def measure(long: bool) -> Iterator[Ratio]:
    """Measure attacks from their first moment on."""
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
    what = f"{SLOW} slow clients, garbage: a second"
    return [
        Ratio("debug_socket", what, f"{SHARE} of a core", statistics.median(shares), SHARE, 1.0),
        Ratio("debug_socket", "the same: a client is answered", "2 s", statistics.median(waits), 2.0, 1.0),
        Ratio("debug_socket", "the same: memory afterwards", "before", after, before, 1.2, Unit.BYTES),
    ]


async def share_of_core(seconds: float) -> float:
    """Return the processor time of this process for each of the next seconds."""
    cost, began = time.process_time(), time.monotonic()
    await trio.sleep(seconds)
    return (time.process_time() - cost) / (time.monotonic() - began)


async def answer_time(path: Path) -> float:
    """Return the time until a client is answered."""
    began = time.monotonic()
    await socket_client(path).daemon()
    return time.monotonic() - began


def memory() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
