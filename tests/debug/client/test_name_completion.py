"""The completion of names in a shell. If an error occurs, no name is offered."""

import argparse
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES, POOLS
from wharfinger.debug.client import name_completion
from wharfinger.debug.client.name_completion import complete_by, complete_instance, complete_name
from wharfinger.debug.server.server import open_debug_server


async def names(prefix: str, args: argparse.Namespace) -> list[str]:
    return await trio.to_thread.run_sync(complete_name, prefix, args)


async def test_names_of_packages_and_pools_are_completed(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    hostile = replace(PACKAGES[0], name="pr\x1b[31m")
    async with open_debug_server(path, CannedInspector(contents=(*PACKAGES, hostile))):
        args = argparse.Namespace(socket=path)
        assert await names("", args) == sorted(each.name for each in PACKAGES)
        assert await names("pr", args) == ["prod.shop"]
        assert await names("x", args) == []
        pools = argparse.Namespace(socket=path, what="pools")
        assert await names("", pools) == sorted(each.name for each in POOLS)


async def test_names_of_applications_in_a_namespace_are_completed(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    async with open_debug_server(path, CannedInspector()):

        async def offered(prefix: str, namespace: str) -> list[str]:
            args = argparse.Namespace(socket=path, namespace=namespace)
            return await trio.to_thread.run_sync(complete_instance, prefix, args)

        assert await offered("", "prod") == ["shop"]
        assert await offered("x", "prod") == []
        assert await offered("", "pro") == []


def test_without_a_daemon_no_name_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHARFINGER_SOCKET", str(tmp_path / "none"))
    assert complete_name("", argparse.Namespace()) == []
    assert complete_instance("", argparse.Namespace(namespace="default")) == []


def test_with_a_stopped_daemon_no_name_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_completion, "WAIT_S", 0.01)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        assert complete_name("", argparse.Namespace(socket=tmp_path / "s")) == []


def test_an_argument_has_its_completer() -> None:
    action = argparse.ArgumentParser().add_argument("name")
    complete_by(action, complete_name)
    assert vars(action)["completer"] is complete_name
