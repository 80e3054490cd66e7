"""The commands about the process of a running daemon: `profile` shows what takes its time, and `memory` what takes its memory."""

import argparse
import sys
from typing import Literal, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_socket, print_answer, terminal_columns, write_note
from wharfinger.debug.encoding.profile import PROFILE_FORMATS, ProfileFormat, profile_text
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.printing.memory import memory_lines
from wharfinger.debug.printing.output import OUTPUT_FORMATS, OutputFormat, render
from wharfinger.debug.profile.profile import DEFAULT_SECONDS, MAX_SECONDS, read_seconds
from wharfinger.formats.terminal_text import printable


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger profile`."""
    parser.description = (
        "Sample the stacks of all threads of a running daemon about 100 times a second. Print how long the event loop of "
        "the daemon waited, and which functions took the time. A profile contains names of functions, files and lines, and "
        "never values. The daemon continues its work; sampling takes about 1 % of a processor. Exit code 0: printed; 1: no "
        "daemon answers, or the daemon is already making another profile."
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=DEFAULT_SECONDS,
        metavar="N",
        help=f"duration of the sampling, in seconds, up to {MAX_SECONDS:g} (default: {DEFAULT_SECONDS:g})",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=PROFILE_FORMATS,
        default="text",
        help="text (default); collapsed: a line for each stack with its microseconds, for programs such as flamegraph.pl "
        "and inferno; speedscope: a file for speedscope.app; json or yaml: everything",
    )
    add_socket(parser)
    parser.set_defaults(handler=_profile)


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger memory`."""
    parser.description = (
        "Print how much memory a running daemon and its child processes use, and what the daemon keeps in memory. Each "
        "part of the daemon's data is shown with the number of its items and, if it is known, with its size. A page of "
        "memory that several processes share is counted once. Exit code 0: printed; 1: no daemon answers."
    )
    parser.add_argument(
        "-o", "--output", choices=("text", *OUTPUT_FORMATS), default="text", help="text (default), json or yaml"
    )
    add_socket(parser)
    parser.set_defaults(handler=_memory)


def _memory(args: argparse.Namespace) -> int:
    output = cast("Literal['text'] | OutputFormat", args.output)

    async def text(client: DebugClient) -> str:
        found = await client.memory()
        if output != "text":
            return render(record_to_json(found), output)
        return "".join(f"{line}\n" for line in memory_lines(found))

    return print_answer(args, text)


def _profile(args: argparse.Namespace) -> int:
    seconds, output = cast("float", args.seconds), cast("ProfileFormat", args.output)
    columns = terminal_columns()

    async def text(client: DebugClient) -> str:
        if sys.stderr.isatty():
            write_note(f"requesting a profile of {seconds:g} s")
        return printable(profile_text(await client.profile(seconds), output, columns), allow="\n")

    return print_answer(args, text, when_empty="no samples")


def _seconds(text: str) -> float:
    """Parse the value of ``--seconds``. Raises ArgumentTypeError."""
    found = read_seconds(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"expected a number over 0 and up to {MAX_SECONDS:g}, found {printable(text[:100])!r}"
        )
    return found
