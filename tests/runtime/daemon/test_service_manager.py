"""The protocol of the service manager (sd_notify), with a real datagram socket: states, the watchdog, and reloads."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from wharfinger.runtime.daemon.service_manager import ServiceManager, open_reloads, open_watchdog, service_manager


@pytest.fixture
def manager_socket(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(10)
        receiver.bind(str(tmp_path / "notify"))
        yield str(tmp_path / "notify"), receiver


def test_states_are_sent_to_a_socket(manager_socket: tuple[str, socket.socket]) -> None:
    address, receiver = manager_socket
    ServiceManager(address).notify("READY=1")
    assert receiver.recv(100) == b"READY=1"


def test_states_are_sent_to_an_abstract_socket() -> None:
    name = f"wharfinger-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0" + name)
        ServiceManager("@" + name).notify("STOPPING=1")
        assert receiver.recv(100) == b"STOPPING=1"


def test_a_missing_service_manager_is_ignored(tmp_path: Path) -> None:
    ServiceManager("").notify("READY=1")
    ServiceManager(str(tmp_path / "gone")).notify("READY=1")


def test_address_and_interval_are_read_from_the_environment() -> None:
    assert service_manager({}) == ServiceManager("", 0.0)
    named = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "3000000"}
    assert service_manager(named) == ServiceManager("/run/x", 3.0)
    assert service_manager({**named, "WATCHDOG_PID": "1"}) == ServiceManager("/run/x", 0.0)
    assert service_manager({**named, "WATCHDOG_USEC": "soon"}) == ServiceManager("/run/x", 0.0)


async def test_the_watchdog_is_notified_while_the_body_runs(manager_socket: tuple[str, socket.socket]) -> None:
    address, receiver = manager_socket
    async with open_watchdog(ServiceManager(address, 0.02)):
        for _ in range(3):
            assert await trio.to_thread.run_sync(receiver.recv, 100) == b"WATCHDOG=1"


async def test_without_a_watchdog_nothing_is_sent(manager_socket: tuple[str, socket.socket]) -> None:
    address, receiver = manager_socket
    receiver.setblocking(False)
    async with open_watchdog(ServiceManager(address, 0.0)):
        await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(BlockingIOError):
        receiver.recv(100)


async def test_the_watchdog_is_not_notified_while_a_check_fails(
    manager_socket: tuple[str, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    address, receiver = manager_socket
    looks: list[str] = ["", "Pods: not heard for 300 s", "Pods: not heard for 301 s", ""]

    def hangs() -> str:
        return looks.pop(0) if looks else "over"

    async with open_watchdog(ServiceManager(address, 0.02), hangs):
        for _ in range(2):
            assert await trio.to_thread.run_sync(receiver.recv, 100) == b"WATCHDOG=1"
    assert [each.getMessage() for each in caplog.records][:1] == [
        "systemd gets no watchdog signal until this problem ends: Pods: not heard for 300 s"
    ]


async def test_a_reload_is_performed_and_reported(manager_socket: tuple[str, socket.socket]) -> None:
    address, receiver = manager_socket
    looked: list[int] = []
    async with open_reloads(ServiceManager(address), lambda: looked.append(1)):
        os.kill(os.getpid(), signal.SIGHUP)
        begun = await trio.to_thread.run_sync(receiver.recv, 100)
        assert begun.startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert await trio.to_thread.run_sync(receiver.recv, 100) == b"READY=1"
    assert looked == [1]


async def test_without_a_service_manager_a_closed_terminal_ends_the_daemon() -> None:
    before = signal.getsignal(signal.SIGHUP)
    async with open_reloads(ServiceManager(""), lambda: None):
        assert signal.getsignal(signal.SIGHUP) == before
