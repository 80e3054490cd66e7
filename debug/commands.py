"""`wharfinger get`, `dump` and `queues`: looking into a running daemon.

All of them ask over the debug socket, print to stdout, and explain a failure in one line on stderr. What they print was
written by strangers: tables and documents leave nothing in it that a terminal would obey.
"""

import argparse
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.debug.client import open_debug_client
from wharfinger.debug.encoding import package_to_json, packages_to_json, queues_to_json
from wharfinger.debug.errors import DebugError
from wharfinger.debug.output import OUTPUT_FORMATS, OutputFormat, render
from wharfinger.debug.table import layout
from wharfinger.debug.text import printable
from wharfinger.runtime.inspector import Inspector, PackageSnapshot
from wharfinger.runtime.paths import SOCKET_VARIABLE, default_socket

_HEADER: Final = ("NAME", "KIND", "PACKAGE", "VERSION", "STATE", "MESSAGE")
_WIDE_HEADER: Final = ("NAME", "KIND", "PACKAGE", "VERSION", "REVISION", "DIGEST", "QUEUED", "STATE", "TIP", "MESSAGE")
_DIGEST_DIGITS: Final = 12


class NoSuchPackageError(DebugError):
    """The daemon has no package of this name."""


def add_get(parser: argparse.ArgumentParser) -> None:
    """`wharfinger get packages [NAME]`."""
    parser.add_argument("what", choices=("packages",), help="what to list")
    _add_name(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "name", *OUTPUT_FORMATS),
        default="table",
        help="table (default), wide: more columns, name: names only, json or yaml: everything",
    )
    _add_socket(parser)
    parser.set_defaults(handler=_get)


def add_dump(parser: argparse.ArgumentParser) -> None:
    """`wharfinger dump [NAME]`."""
    _add_name(parser)
    _add_document_output(parser)
    _add_socket(parser)
    parser.set_defaults(handler=_dump)


def add_queues(parser: argparse.ArgumentParser) -> None:
    """`wharfinger queues dump [NAME]`."""
    parser.add_argument("what", choices=("dump",), help="dump: every task, head of the queue first")
    _add_name(parser)
    _add_document_output(parser)
    _add_socket(parser)
    parser.set_defaults(handler=_queues)


async def packages_text(inspector: Inspector, name: str | None, output: str, columns: int | None) -> str:
    """What `get packages` prints; no text when there are no packages. Raises NoSuchPackageError."""
    if output in OUTPUT_FORMATS:
        return await dump_text(inspector, name, output)
    packages = await inspector.packages() if name is None else (await _one_package(inspector, name),)
    if not packages:
        return ""
    if output == "name":
        return "".join(f"{printable(package.name)}\n" for package in packages)
    header, row = (_WIDE_HEADER, _wide_row) if output == "wide" else (_HEADER, _row)
    return "".join(f"{line}\n" for line in layout(header, [row(package) for package in packages], columns))


async def dump_text(inspector: Inspector, name: str | None, output: OutputFormat) -> str:
    """What `dump` prints: all packages, or one. Raises NoSuchPackageError."""
    if name is None:
        return render(packages_to_json(await inspector.packages()), output)
    return render(package_to_json(await _one_package(inspector, name)), output)


async def queues_text(inspector: Inspector, name: str | None, output: OutputFormat) -> str:
    """What `queues dump` prints: all queues, or one. Raises NoSuchPackageError."""
    queues = await inspector.queues()
    if name is not None:
        queues = tuple(queue for queue in queues if queue.name == name)
        if not queues:
            raise NoSuchPackageError(f"no queue named {name!r}; `wharfinger queues dump` shows all")
    return render(queues_to_json(queues), output)


def _get(args: argparse.Namespace) -> int:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return _print_answer(
        args,
        lambda inspector: packages_text(inspector, _name(args), cast("str", args.output), columns),
        when_empty="no packages",
    )


def _dump(args: argparse.Namespace) -> int:
    return _print_answer(args, lambda inspector: dump_text(inspector, _name(args), _document(args)))


def _queues(args: argparse.Namespace) -> int:
    return _print_answer(args, lambda inspector: queues_text(inspector, _name(args), _document(args)))


def _print_answer(
    args: argparse.Namespace, question: Callable[[Inspector], Awaitable[str]], *, when_empty: str = ""
) -> int:
    path = cast("Path | None", args.socket) or default_socket()
    try:
        text = trio.run(_ask, path, question)
    except DebugError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    if not text:
        print(when_empty, file=sys.stderr)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), end="", flush=True)
    return 0


async def _ask(path: Path, question: Callable[[Inspector], Awaitable[str]]) -> str:
    async with open_debug_client(path) as client:
        return await question(client)


async def _one_package(inspector: Inspector, name: str) -> PackageSnapshot:
    package = await inspector.package(name)
    if package is None:
        raise NoSuchPackageError(f"no package named {name!r}; `wharfinger get packages` lists them")
    return package


def _row(package: PackageSnapshot) -> tuple[str, ...]:
    return (package.name, package.kind, package.package, package.version, package.state, package.message)


def _wide_row(package: PackageSnapshot) -> tuple[str, ...]:
    return (
        package.name,
        package.kind,
        package.package,
        package.version,
        str(package.release_revision or ""),
        package.digest.removeprefix("sha256:")[:_DIGEST_DIGITS],
        str(len(package.queue.tasks)),
        package.state,
        package.tip,
        package.message,
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="one package: NAMESPACE.INSTANCE of an Application, or a Module's name"
    )


def _add_document_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=OUTPUT_FORMATS, default="yaml", help="yaml (default) or json")


def _add_socket(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help=f"debug socket of the daemon (default: ${SOCKET_VARIABLE}, else the one in the state folder)",
    )


def _name(args: argparse.Namespace) -> str | None:
    return cast("str | None", args.name)


def _document(args: argparse.Namespace) -> OutputFormat:
    return cast("OutputFormat", args.output)
