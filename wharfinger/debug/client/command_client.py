"""The connection of a command to a running daemon. The answer goes to stdout, and a failure is reported in one line on stderr."""

import argparse
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final, TypeVar, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import run_without_loop
from wharfinger.debug.client.name_completion import complete_by, complete_name
from wharfinger.debug.errors import DebugError
from wharfinger.formats.encodable import encodable
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.paths import SOCKET_VARIABLE, default_socket

DUMP: Final = "dump"
EXIT_USAGE: Final = 2
_T = TypeVar("_T")


def add_name(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the argument NAME: ``args.name``, None if it was left out."""
    name = parser.add_argument(
        "name",
        nargs=None if required else "?",
        metavar="NAME",
        help="one package: NAMESPACE.NAME of an Application, or the name of a Module",
    )
    complete_by(name, complete_name)


def add_dump_word(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add the optional word `dump`. A user may leave it out even if a NAME follows (see :func:`with_name`)."""
    what = parser.add_argument("what", nargs="?", default=DUMP, metavar=DUMP, help=help_text)
    complete_by(what, complete_name)


def with_name(handler: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return a handler for a command that has the optional word `dump` before its NAME. If a user types only one word, and it
    is not `dump`, it is the NAME.
    """

    def handle(args: argparse.Namespace) -> int:
        if args.what != DUMP:
            if args.name is not None:
                write_note(f"error: expected `{DUMP}` or one NAME, found {printable(f'{args.what} {args.name}'):.200}")
                return EXIT_USAGE
            args.name, args.what = args.what, DUMP
        return handler(args)

    return handle


def add_socket(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the daemon to query."""
    parser.add_argument(
        "--socket",
        type=path_option,
        metavar="PATH",
        help=f"debug socket of the daemon (default: ${SOCKET_VARIABLE}, else run/debug.sock in the daemon's state folder)",
    )


def ask(args: argparse.Namespace, question: Callable[[DebugClient], Coroutine[object, None, _T]]) -> _T:
    """Run ``question`` with a client of the daemon that ``args`` select. Raises the errors of ``question``."""
    return run_without_loop(question(DebugClient(cast("Path | None", args.socket) or default_socket())))


def print_answer(
    args: argparse.Namespace, question: Callable[[DebugClient], Coroutine[object, None, str]], *, when_empty: str = ""
) -> int:
    """Run ``question`` on the daemon, print its answer, and return the exit code. For an empty answer, print ``when_empty`` on
    stderr.
    """
    try:
        text = ask(args, question)
        if not text:
            write_note(when_empty)
        show(text)
    except DebugError as error:
        return print_failure(error)
    return 0


def print_failure(error: DebugError) -> int:
    """Print on stderr why there is no answer, and return the exit code."""
    write_note(f"error: {printable(str(error))}")
    return 1


def write_note(line: str) -> None:
    """Write a line to stderr, so that it is not part of the answer on stdout."""
    sys.stderr.write(f"{line}\n")


def show(text: str) -> None:
    """Write the answer to stdout. Characters that the terminal's encoding lacks are escaped.

    Raises BrokenPipeError if the reader has closed its end, and other errors of stdout, which `__main__` reports.
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
