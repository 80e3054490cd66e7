"""The command `wharfinger dashboard`: a read-only page of a running daemon, for a browser on the same machine."""

import argparse
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Final, cast

from wharfinger.debug.client.command_client import add_socket, ask, print_failure, show, write_note
from wharfinger.debug.errors import DebugError
from wharfinger.runtime.paths import default_socket

_MOST_PORT: Final = 65_535


class DashboardExtraError(DebugError):
    """A library that the page needs is not installed."""


def add_dashboard(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger dashboard`."""
    parser.description = (
        "Serve a read-only web page about a running daemon to a browser on this machine. The page shows the packages and their "
        "dependencies with live states, the details of each package, and the queues. Open the printed address within 10 "
        "minutes. The address works only once. The page is served until this command ends (Ctrl-C). Secrets are masked. "
        "Exit code 0: ended by Ctrl-C or SIGTERM; 1: no daemon answers, or the page cannot be served."
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="PORT",
        help="the port to listen on (default: any free port)",
    )
    add_socket(parser)
    parser.set_defaults(handler=_dashboard)


def _port(text: str) -> int:
    """Parse the value of ``--port``. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_PORT)) and int(text) <= _MOST_PORT):
        raise argparse.ArgumentTypeError(f"expected a port number up to {_MOST_PORT}, found {text[:100]!r}")
    return int(text)


def _dashboard(args: argparse.Namespace) -> int:
    path = cast("Path | None", args.socket) or default_socket()
    try:
        if find_spec("jinja2") is None:
            raise DashboardExtraError("the library jinja2 is not installed; pip install 'wharfinger[dashboard]'")
        ask(args, lambda client: client.daemon())
        _serve(path, cast("int", args.port))
    except DebugError as error:
        return print_failure(error)
    return 0


def _serve(path: Path, port: int) -> None:
    import trio  # noqa: PLC0415 - `--help` starts without it

    from wharfinger.debug.client.client import DebugClient  # noqa: PLC0415
    from wharfinger.debug.dashboard.server import open_dashboard  # noqa: PLC0415
    from wharfinger.debug.dashboard.source import exchange_in_thread  # noqa: PLC0415

    async def serve() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with open_dashboard(DebugClient(path, exchange_in_thread), port) as address:
                show(f"{address}\n")
                write_note(
                    "open this address in a browser on this machine; it works once, within 10 minutes. Ctrl-C ends the page."
                )
                async for _ in signals:
                    break

    trio.run(serve)
