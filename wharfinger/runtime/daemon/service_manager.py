"""The notification protocol of systemd (sd_notify(3)): READY, STOPPING, and a watchdog fed by the daemon's own loop.

Without ``NOTIFY_SOCKET`` in the environment, nothing is sent. The watchdog is fed from a trio task, so a loop that hangs
stops feeding it, and systemd restarts the daemon.
"""

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """The service manager's socket ("": none), and the interval of its watchdog in seconds (0: no watchdog)."""

    address: str = ""
    watchdog_s: float = 0.0

    def notify(self, state: str) -> None:
        """Send ``READY=1``, ``STOPPING=1``, ``WATCHDOG=1`` or ``STATUS=...``; a missing manager is not an error."""
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
        ):
            sender.settimeout(0)
            sender.connect(address)
            sender.send(state.encode())


def service_manager(environment: Mapping[str, str] = os.environ) -> ServiceManager:
    """Return the service manager that started this process, if one did."""
    watchdog_s = 0.0
    if environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
        with contextlib.suppress(ValueError):
            watchdog_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6
    return ServiceManager(environment.get("NOTIFY_SOCKET", ""), watchdog_s)


@asynccontextmanager
async def open_watchdog(manager: ServiceManager) -> AsyncIterator[None]:
    """Feed the watchdog at half its interval while the body runs."""
    async with trio.open_nursery() as nursery:
        if manager.address and manager.watchdog_s > 0:
            nursery.start_soon(_feed, manager, name="watchdog")
        yield
        nursery.cancel_scope.cancel()


async def _feed(manager: ServiceManager) -> None:
    while True:
        manager.notify("WATCHDOG=1")
        await trio.sleep(manager.watchdog_s / 2)
