"""The connection of a command to a running daemon: the answer goes to stdout, a failure in one line to stderr."""

import argparse
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

import trio

from wharfinger.debug.client.client import DebugClient, open_debug_client
from wharfinger.debug.errors import DebugError
from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.paths import SOCKET_VARIABLE, default_socket

_T = TypeVar("_T")


def add_name(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the argument NAME: ``args.name``, None if it was left out."""
    parser.add_argument(
        "name",
        nargs=None if required else "?",
        metavar="NAME",
        help="one package: NAMESPACE.INSTANCE of an Application, or a Module's name",
    )


def add_socket(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the daemon to ask."""
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help=f"debug socket of the daemon (default: ${SOCKET_VARIABLE}, else the one in the state folder)",
    )


def ask(args: argparse.Namespace, question: Callable[[DebugClient], Awaitable[_T]]) -> _T:
    """Ask the daemon that ``args`` select. Raises the errors of the question."""
    return trio.run(_ask, cast("Path | None", args.socket) or default_socket(), question)


def print_answer(
    args: argparse.Namespace, question: Callable[[DebugClient], Awaitable[str]], *, when_empty: str = ""
) -> int:
    """Ask, print the answer, and return the exit code. For an empty answer, print ``when_empty`` on stderr."""
    try:
        text = ask(args, question)
        if not text:
            say(when_empty)
        show(text)
    except DebugError as error:
        return fail(error)
    return 0


def fail(error: DebugError) -> int:
    """Print on stderr why there is no answer, and return the exit code."""
    say(f"error: {printable(str(error))}")
    return 1


def say(line: str) -> None:
    """Write a line to stderr, beside the answer."""
    sys.stderr.write(f"{line}\n")


def show(text: str) -> None:
    """Write the answer to stdout. Characters that the terminal's encoding lacks are escaped.

    Raises BrokenPipeError if the reader has closed its end, and the errors of stdout as `__main__` reports them.
    """
    sys.stdout.write(encodable(text, _encoding()))
    sys.stdout.flush()


def terminal_columns() -> int | None:
    """Return the width of the terminal, or None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def is_unicode() -> bool:
    """Return whether the answer may contain characters that are not ASCII."""
    return _encoding().replace("-", "").lower().startswith("utf")


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"


async def _ask(path: Path, question: Callable[[DebugClient], Awaitable[_T]]) -> _T:
    async with open_debug_client(path) as client:
        return await question(client)
