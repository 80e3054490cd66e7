"""The notification protocol of systemd (sd_notify(3)): states, a status line, and a watchdog that the daemon's event loop feeds.

Without ``NOTIFY_SOCKET`` in the environment, nothing is sent. A trio task feeds the watchdog, so a hanging event loop does
not feed it. While a watch of the API server hangs, the task does not feed the watchdog either, and ``/livez`` fails. A
watchdog that is not fed makes systemd restart the daemon. A reload (SIGHUP, which only a daemon under a service manager
handles) checks all resources again.
"""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """The service manager's socket ("" if there is no service manager), and the interval of its watchdog in seconds (0 if
    there is no watchdog).
    """

    address: str = ""
    watchdog_s: float = 0.0

    def notify(self, state: str) -> None:
        """Send ``READY=1``, ``STOPPING=1``, ``WATCHDOG=1`` or ``STATUS=...``; without a service manager, do nothing."""
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
    """Return the service manager that started this process; its socket is "" if no service manager started it."""
    watchdog_s = 0.0
    if environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid()):
        with contextlib.suppress(ValueError):
            watchdog_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6
    return ServiceManager(environment.get("NOTIFY_SOCKET", ""), watchdog_s)


@asynccontextmanager
async def open_watchdog(manager: ServiceManager, hangs: Callable[[], str] = str) -> AsyncIterator[None]:
    """Feed the watchdog at half its interval while the body runs, except while ``hangs`` returns a problem."""
    async with trio.open_nursery() as nursery:
        if manager.address and manager.watchdog_s > 0:
            nursery.start_soon(_feed, manager, hangs, name="watchdog")
        yield
        nursery.cancel_scope.cancel()


async def _feed(manager: ServiceManager, hangs: Callable[[], str]) -> None:
    before = ""
    while True:
        found = hangs()
        if not found:
            manager.notify("WATCHDOG=1")
        elif not before:
            log.error("systemd gets no watchdog signal until this problem ends: %s", found)
        before = found
        await trio.sleep(manager.watchdog_s / 2)


@asynccontextmanager
async def open_reloads(manager: ServiceManager, look_again: Callable[[], None]) -> AsyncIterator[None]:
    """Call ``look_again`` at each SIGHUP while the body runs, if a service manager started this process."""
    if not manager.address:
        yield
        return
    with trio.open_signal_receiver(signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_reload, manager, signals, look_again, name="reloads")
            yield
            nursery.cancel_scope.cancel()


async def _reload(manager: ServiceManager, signals: AsyncIterator[int], look_again: Callable[[], None]) -> None:
    async for _ in signals:
        manager.notify(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        log.info("SIGHUP: checking all resources again")
        look_again()
        manager.notify("READY=1")
