"""The command `wharfinger diff NAME`: what the next apply of a package would change in the cluster.

With ``--against`` the same command compares trees of manifests without a cluster (:mod:`wharfinger.offline.diff_command`).
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Final, cast

from wharfinger.debug.client.command_client import add_name, add_socket, ask, print_failure, show, write_note
from wharfinger.debug.client.unknown_names import NoSuchPackageError, no_such_package
from wharfinger.debug.encoding.records import record_to_json
from wharfinger.debug.errors import DebugError
from wharfinger.debug.listing.listing import document_text
from wharfinger.debug.package.difference_text import (
    DifferenceProblemError,
    coloured,
    difference_lines,
    summary_lines,
)
from wharfinger.debug.printing.output import OUTPUT_FORMATS
from wharfinger.runtime.package_details import DifferenceSnapshot

EXIT_DIFFERENT: Final = 2
_NO_COLOUR: Final = "NO_COLOR"


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger diff NAME`."""
    parser.description = (
        "Show what the next apply of a package of a running daemon would change in the cluster, object by object. The "
        "daemon asks the API server for a dry run of each apply. If a dry run is not possible, the object of the chart is "
        "shown, with the reason. Nothing is changed, secrets are masked, and changes that hooks would make are not "
        "predicted. Exit code 0: no difference; 2: differences; 1: the difference is not known, no daemon answers, or "
        "wrong usage. `wharfinger diff PATH --against FOLDER|REVISION` compares trees of manifests without a cluster."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", *OUTPUT_FORMATS),
        default="text",
        help="text (default): + created, ~ changed, - deleted, = no longer in the chart and kept; json or yaml",
    )
    add_socket(parser)
    parser.set_defaults(handler=_diff)


def _diff(args: argparse.Namespace) -> int:
    name, output = cast("str", args.name), cast("str", args.output)
    try:
        found = ask(args, lambda client: client.difference(name))
        if found is None:
            raise _unknown(name, ask(args, lambda client: no_such_package(client, name)))
        if found.problem:
            raise DifferenceProblemError(
                f"package {name!r}: cannot tell what the next apply would change: {found.problem}"
            )
    except DebugError as error:
        return print_failure(error)
    if output != "text":
        show(document_text(record_to_json(found), output))
    else:
        _print(found)
    return EXIT_DIFFERENT if found.changes else 0


def _print(difference: DifferenceSnapshot) -> None:
    in_colour = sys.stdout.isatty() and not os.environ.get(_NO_COLOUR)
    lines = difference_lines(difference)
    show("".join(f"{coloured(line) if in_colour else line}\n" for line in lines))
    for line in summary_lines(difference):
        write_note(line)


def _unknown(name: str, error: NoSuchPackageError) -> NoSuchPackageError:
    if Path(name).exists():
        return NoSuchPackageError(f"{error}; {name} is a path: to compare trees, add --against FOLDER|REVISION")
    return error
