"""The command `wharfinger get`, which prints every list as a table or a document, with options like those of kubectl."""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import (
    add_name,
    add_socket,
    ask,
    is_unicode,
    print_failure,
    show,
    terminal_columns,
    write_note,
)
from wharfinger.debug.client.name_completion import complete_by
from wharfinger.debug.client.polling import Pacer
from wharfinger.debug.client.unknown_names import why_incomplete
from wharfinger.debug.errors import DebugError
from wharfinger.debug.listing.listing import (
    JSON_PATH,
    NAME,
    OUTPUTS,
    TABLE,
    WIDE,
    Listing,
    Row,
    Selection,
    listed_text,
    read_output,
)
from wharfinger.debug.listing.lists import LISTS, list_named, listing_of
from wharfinger.debug.listing.packages import ARROW
from wharfinger.debug.listing.watching import WatchedList
from wharfinger.formats.errors import FormatError

if TYPE_CHECKING:
    from wharfinger.kube.selectors import LabelSelector  # imported at run time only for -l

_EPILOG: Final = (
    "NAME selects the rows of one package. In the list of repositories, NAME is a repository; in the list of versions, "
    "NAME is a package of a repository; in the list of pools, NAME is a pool. -o jsonpath takes a template in kubectl's "
    "syntax, and applies it to the document that -o json prints: `wharfinger get packages -o jsonpath='{range "
    '.apps.*}{.name}{"\\n"}{end}\'`. Exit code 0: printed, even if the list is empty; 1: no daemon answers, or the daemon '
    "does not know the name; 2: wrong usage."
)


def add_get(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger get LIST [NAME]`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "what",
        type=list_named,
        choices=LISTS,
        metavar="LIST",
        help="packages: Applications and Modules; applications; modules; repositories; versions: the versions of each "
        "package for which a resource names a version range or a channel; queues: one for each package; hooks; resources: the "
        "objects of packages in the cluster, with their health; watches: the kubernetes bindings of hooks; pools: "
        "the pools of idle processes and of pods, and the hooks that keep running; leader: the leading daemon. Singular and "
        "short names work, too",
    )
    add_name(parser)
    output = parser.add_argument(
        "-o",
        "--output",
        type=output_format,
        default=TABLE,
        metavar="FORMAT",
        help="table (default); wide: more columns; name: only names; json or yaml: everything; jsonpath=TEMPLATE: the "
        "fields that the template selects",
    )
    complete_by(output, complete_output)
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="after the list, print each row that is new or has changed, until Ctrl-C; the command asks the daemon about once "
        "a second",
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        default="",
        metavar="NAMESPACE",
        help="only rows of this namespace; repositories, versions and leader have no namespace",
    )
    scope.add_argument("-A", "--all-namespaces", action="store_true", help="rows of all namespaces (default)")
    parser.add_argument(
        "-l",
        "--selector",
        type=_selector,
        default=None,
        metavar="SELECTOR",
        help="only rows with these labels, in kubectl's syntax: team=web,tier!=test. In the list of repositories, the "
        "labels are those of the repository; in the list of resources, those of the object; in other lists, those of the "
        "package's resource; versions, pools and leader have no labels",
    )
    parser.add_argument("--no-headers", action="store_true", help="print no header above a table")
    add_socket(parser)
    parser.set_defaults(handler=_get)


def output_format(text: str) -> str:
    """Parse the value of ``-o``. Raises ArgumentTypeError."""
    try:
        return read_output(text)
    except (FormatError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def complete_output(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:  # noqa: ARG001
    """Return the formats that begin with ``prefix``."""
    return [each for each in OUTPUTS if each.startswith(prefix)]


def _selector(text: str) -> "LabelSelector":
    """Parse the value of ``-l``. Raises ArgumentTypeError."""
    from wharfinger.kube.selectors import SelectorError, parse_label_selector  # noqa: PLC0415 - seldom needed

    try:
        return parse_label_selector(text)
    except SelectorError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _get(args: argparse.Namespace) -> int:
    listing = listing_of(cast("str", args.what), ARROW if is_unicode() else "->")
    selection = Selection(
        cast("str | None", args.name), cast("str", args.namespace), cast("LabelSelector | None", args.selector)
    )
    if args.watch:
        return watch(args, listing, selection, Pacer())
    return print_list(args, listing, selection)


def _fields(listing: Listing, rows: Sequence[Row], selection: Selection) -> str:
    """Return the names of the top-level fields of a list's document, for a user whose template matches nothing."""
    document = listing.document(rows, selection)
    first = document[0] if isinstance(document, list) and document else document
    return ", ".join(first) if isinstance(first, dict) else "(none)"


def print_list(args: argparse.Namespace, listing: Listing, selection: Selection) -> int:
    """Print the chosen rows of a list once, and return the exit code."""
    output, headers = cast("str", args.output), not getattr(args, "no_headers", False)
    try:
        rows = ask(args, partial(_rows, listing, selection))
        text = listed_text(listing, rows, selection, output, terminal_columns(), headers=headers)
        if not text and output in (TABLE, WIDE, NAME):
            write_note(_empty(listing, selection))
            if incomplete := ask(args, why_incomplete):
                write_note(incomplete)
        if not text and rows and output.startswith(JSON_PATH):
            write_note(
                f"the template matches nothing; the document of `-o json` has the fields {_fields(listing, rows, selection)}"
            )
        show(_with_line_break(text, output))
    except DebugError as error:
        return print_failure(error)
    return 0


def watch(args: argparse.Namespace, listing: Listing, selection: Selection, pacer: Pacer) -> int:
    """Print the list, and then its changes; return the exit code once the daemon does not answer any more."""
    output = cast("str", args.output)
    shown = WatchedList(listing, selection, output, terminal_columns(), headers=not args.no_headers)
    is_first = True
    try:
        while True:
            pacer.asked()
            text = shown.update(ask(args, partial(_rows, listing, selection)))
            if is_first and not text and output in (TABLE, WIDE, NAME):
                write_note(f"{_empty(listing, selection)}; waiting for some")
            is_first = False
            if text:
                show(_with_line_break(text, output))
            pacer.next()
    except DebugError as error:
        return print_failure(error)


async def _rows(listing: Listing, selection: Selection, client: DebugClient) -> tuple[Row, ...]:
    return await listing.rows(client, selection)


def _with_line_break(text: str, output: str) -> str:
    """Return the text with a final line break, which a JSONPath template may lack."""
    return f"{text}\n" if output.startswith(JSON_PATH) and text and not text.endswith("\n") else text


def _empty(listing: Listing, selection: Selection) -> str:
    if selection.namespace or selection.labels is not None:
        return f"no {listing.what} match"
    return listing.when_empty
