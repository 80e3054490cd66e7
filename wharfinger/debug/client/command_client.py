"""How a command asks a running daemon, and says what came of it: the answer on stdout, a failure in one line on stderr."""

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
    """The argument NAME: ``args.name``, None where it was left out."""
    parser.add_argument(
        "name",
        nargs=None if required else "?",
        metavar="NAME",
        help="one package: NAMESPACE.INSTANCE of an Application, or a Module's name",
    )


def add_socket(parser: argparse.ArgumentParser) -> None:
    """The option that says which daemon is asked."""
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help=f"debug socket of the daemon (default: ${SOCKET_VARIABLE}, else the one in the state folder)",
    )


def ask(args: argparse.Namespace, question: Callable[[DebugClient], Awaitable[_T]]) -> _T:
    """Ask the daemon that ``args`` name. Raises what the question raises."""
    return trio.run(_ask, cast("Path | None", args.socket) or default_socket(), question)


def print_answer(
    args: argparse.Namespace, question: Callable[[DebugClient], Awaitable[str]], *, when_empty: str = ""
) -> int:
    """Ask, print what comes, and return the exit code; an empty answer is explained on stderr."""
    try:
        text = ask(args, question)
        if not text:
            say(when_empty)
        show(text)
    except DebugError as error:
        return fail(error)
    return 0


def fail(error: DebugError) -> int:
    """Say why there is no answer, and return the exit code."""
    say(f"error: {printable(str(error))}")
    return 1


def say(line: str) -> None:
    """A line beside the answer."""
    sys.stderr.write(f"{line}\n")


def show(text: str) -> None:
    """The answer; what the terminal's encoding has not is escaped.

    Raises BrokenPipeError where nobody reads it any more, and what the command line makes of other errors of stdout.
    """
    sys.stdout.write(encodable(text, _encoding()))
    sys.stdout.flush()


def terminal_columns() -> int | None:
    """The width of the terminal; None where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def is_unicode() -> bool:
    """Whether the answer may have characters that are not ASCII."""
    return _encoding().replace("-", "").lower().startswith("utf")


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"


async def _ask(path: Path, question: Callable[[DebugClient], Awaitable[_T]]) -> _T:
    async with open_debug_client(path) as client:
        return await question(client)
