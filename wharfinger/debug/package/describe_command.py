"""The command `wharfinger describe`: everything about one package on one page."""

import argparse
from datetime import UTC, datetime
from typing import cast

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.command_client import add_name, add_socket, is_unicode, print_answer, terminal_columns
from wharfinger.debug.listing.listing import document_text
from wharfinger.debug.listing.packages import ARROW
from wharfinger.debug.package.description import describe, description_lines, description_to_json
from wharfinger.debug.printing.output import OUTPUT_FORMATS


def add_describe(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger describe NAME`."""
    parser.description = (
        "Print everything about one package of a running daemon: its version and state, a remedy if it has a problem, its "
        "conditions and settings, its objects with their health, its hooks, and the recent decisions and Events about it. "
        "Secrets are masked. Exit code 0: printed; 1: no daemon answers, or there is no such package."
    )
    add_name(parser, required=True)
    parser.add_argument(
        "-o", "--output", choices=("text", *OUTPUT_FORMATS), default="text", help="text (default), json or yaml"
    )
    add_socket(parser)
    parser.set_defaults(handler=_describe)


def _describe(args: argparse.Namespace) -> int:
    columns, arrow, name = terminal_columns(), ARROW if is_unicode() else "->", cast("str", args.name)

    async def text(client: DebugClient) -> str:
        found = await describe(client, name)
        if args.output != "text":
            return document_text(description_to_json(found), cast("str", args.output))
        return "".join(f"{line}\n" for line in description_lines(found, datetime.now(UTC), columns, arrow))

    return print_answer(args, text)
