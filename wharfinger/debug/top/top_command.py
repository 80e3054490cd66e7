"""The command `wharfinger top`: a live view of a running daemon on the terminal."""

import argparse
import os
import sys
from pathlib import Path
from typing import Final, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_socket, ask, is_unicode, print_failure
from wharfinger.debug.errors import DebugAnswerError, DebugError
from wharfinger.debug.listing.packages import ARROW
from wharfinger.runtime.paths import default_socket

_NO_COLOUR: Final = "NO_COLOR"


class NotATerminalError(DebugError):
    """The command was started without a terminal."""


def add_top(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger top`."""
    parser.description = (
        "Show the packages of a running daemon on the terminal, with their states, queues, hooks and drift. The view is "
        "updated about once a second. Keys: the arrows select a row, enter opens the page of a package, / filters, s "
        "sorts, tab shows the next list, ? lists all keys, q quits. Nothing is changed, and secrets are masked. The view "
        "has no colors if NO_COLOR is set. Exit code 0: ended with q; 1: no daemon answers, or the terminal cannot show "
        "the view; 130, 143, 129: ended by Ctrl-C, SIGTERM or SIGHUP."
    )
    add_socket(parser)
    parser.set_defaults(handler=_top)


def _top(args: argparse.Namespace) -> int:
    try:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise NotATerminalError("`top` needs a terminal; `wharfinger get packages -w` prints changes to any output")
        return _show(args)
    except DebugError as error:
        return print_failure(error)


def _show(args: argparse.Namespace) -> int:
    # Imported here, because curses may be missing, and `--help` must work without it.
    try:
        from wharfinger.debug.top.terminal import open_terminal  # noqa: PLC0415
    except ImportError as error:
        raise NotATerminalError(f"Python's module curses is not installed: {error}") from error
    from wharfinger.debug.top.loop import Loop  # noqa: PLC0415
    from wharfinger.debug.top.machine import first_view  # noqa: PLC0415
    from wharfinger.debug.top.questions import Questions, ask_overview  # noqa: PLC0415
    from wharfinger.debug.top.wake import open_wake  # noqa: PLC0415

    overview = ask(args, ask_overview)
    in_colour = not os.environ.get(_NO_COLOUR)
    with (
        open_wake() as wake,
        open_terminal(sys.stdout.fileno(), sys.stdout.encoding, in_colour=in_colour) as terminal,
    ):
        arrow = ARROW if is_unicode() else "->"
        loop = Loop(first_view(overview, *terminal.size(), arrow), terminal, sys.stdin.fileno(), wake)
        questions = Questions(DebugClient(cast("Path | None", args.socket) or default_socket()), loop.post)
        questions.start()
        try:
            ending = loop.run(questions)
        finally:
            questions.stop()
    if ending.problem:
        raise DebugAnswerError(ending.problem)
    return ending.code
