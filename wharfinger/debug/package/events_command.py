"""The command `wharfinger events`: the Kubernetes Events about a package, or all Events that daemons wrote."""

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Final, cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_name, add_socket, print_answer, terminal_columns
from wharfinger.debug.client.unknown_names import no_such_package
from wharfinger.debug.encoding.details import events_to_json
from wharfinger.debug.listing.listing import document_text
from wharfinger.debug.printing.output import OUTPUT_FORMATS
from wharfinger.formats.text_table import layout
from wharfinger.kube.times import format_time
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.package_details import ClusterEventSnapshot

_HEADER: Final = ("LAST-SEEN", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE")
_TYPES: Final = ("Normal", "Warning")


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger events [NAME]`."""
    parser.description = (
        "Print the Kubernetes Events about the resource of a package, oldest first. Without NAME, print all Events that "
        "Wharfinger daemons wrote in this cluster. The cluster keeps Events for about an hour; `wharfinger history` also "
        "shows what happened before that. Exit code 0: printed; 1: no daemon answers, the API server does not answer, or there "
        "is no such package."
    )
    add_name(parser)
    parser.add_argument("--type", choices=_TYPES, default="", help="only Events of this type")
    parser.add_argument("--no-headers", action="store_true", help="print no header above the table")
    parser.add_argument(
        "-o", "--output", choices=("table", *OUTPUT_FORMATS), default="table", help="table (default), json or yaml"
    )
    add_socket(parser)
    parser.set_defaults(handler=_events)


def _events(args: argparse.Namespace) -> int:
    columns, kind = terminal_columns(), cast("str", args.type)

    async def text(client: DebugClient) -> str:
        found = [each for each in await read_events(client, cast("str | None", args.name)) if kind in ("", each.type)]
        if args.output != "table":
            return document_text(events_to_json(found), cast("str", args.output))
        lines = event_lines(found, columns)
        return "".join(f"{line}\n" for line in (lines[1:] if args.no_headers else lines))

    return print_answer(args, text, when_empty="no Events")


async def read_events(inspector: Inspector, name: str | None) -> tuple[ClusterEventSnapshot, ...]:
    """Return the Events about a package, or all Events that daemons wrote. Raises NoSuchPackageError."""
    found = await inspector.events(name)
    if found is None:
        raise await no_such_package(inspector, name or "")
    return found


def event_lines(events: Sequence[ClusterEventSnapshot], columns: int | None) -> list[str]:
    """Return the lines of a table, with its header; an empty list if there are no Events."""
    rows = [
        (_time(each.last), each.type, each.reason, str(each.count), each.subject, " ".join(each.message.split()))
        for each in events
    ]
    return layout(_HEADER, rows, columns) if rows else []


def _time(moment: datetime | None) -> str:
    return format_time(moment) if moment is not None else "unknown"
