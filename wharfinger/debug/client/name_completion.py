"""The names that a shell offers at the Tab key, from the running daemon."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import run_without_loop
from wharfinger.debug.errors import DebugError
from wharfinger.formats.terminal_text import is_safe
from wharfinger.runtime.paths import default_socket

WAIT_S: Final = 2.0
"""The longest wait, in seconds, for the daemon's answer after the Tab key; after that, no names are suggested."""
POOLS: Final = "pools"
REPOSITORIES: Final = "repositories"
VERSIONS: Final = "versions"


class Completer(Protocol):
    """A function that argcomplete calls to complete an argument; it gets further keyword arguments, which are not used here."""

    def __call__(self, prefix: str, parsed_args: argparse.Namespace, **others: object) -> list[str]:
        """Return the values that begin with ``prefix``."""
        ...


def complete_by(action: argparse.Action, completer: Completer) -> None:
    """Make argcomplete call ``completer`` for the values of an argument."""
    vars(action)["completer"] = completer


def complete_name(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:
    """Return the names that begin with ``prefix``; none without a daemon.

    After `get pools`, these are names of pools; after `get repositories`, names of repositories; after `get versions`, names of
    packages in the repositories; otherwise, names of packages of the daemon.
    """
    client = _client(parsed_args)
    try:
        what = getattr(parsed_args, "what", None)
        if what == POOLS:
            names = [pool.name for pool in run_without_loop(client.pools())]
        elif what == REPOSITORIES:
            names = [each.name for each in run_without_loop(client.repositories())]
        elif what == VERSIONS:
            names = [index.package for each in run_without_loop(client.repositories()) for index in each.packages]
        else:
            names = [package.name for package in run_without_loop(client.packages())]
    except DebugError:
        return []
    return _offered(names, prefix)


def complete_instance(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:
    """Return the names of those Applications in the namespace of ``parsed_args`` whose names begin with ``prefix``; none without
    a daemon.
    """
    namespace = f"{parsed_args.namespace}."
    try:
        packages = run_without_loop(_client(parsed_args).packages())
    except DebugError:
        return []
    return _offered((each.name.removeprefix(namespace) for each in packages if each.name.startswith(namespace)), prefix)


def _client(parsed_args: argparse.Namespace) -> DebugClient:
    path = cast("Path | None", getattr(parsed_args, "socket", None)) or default_socket()
    return DebugClient(path, wait_s=WAIT_S)


def _offered(names: Iterable[str], prefix: str) -> list[str]:
    return sorted(name for name in set(names) if name.startswith(prefix) and is_safe(name))
