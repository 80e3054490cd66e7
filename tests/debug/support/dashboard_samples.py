"""Answers of a daemon for the web page, and requests as browsers send them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.debug.support import graph_samples
from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import DAEMON, LOG, STATISTICS
from tests.debug.support.top_samples import PACKAGES, PAGE
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.dashboard.server import open_dashboard
from wharfinger.debug.dashboard.source import DaemonAnswer, PackageAnswer, exchange_in_thread
from wharfinger.debug.server.server import open_debug_server
from wharfinger.httpd.messages import Request
from wharfinger.runtime.inspector import Inspector

NODES = graph_samples.NODES
WHOLE = DaemonAnswer(DAEMON, PACKAGES, NODES, STATISTICS)
assert PAGE.description is not None
ONE = PackageAnswer(DAEMON, PAGE.description, LOG, NODES, PACKAGES)
HOST = {"host": "127.0.0.1:8080"}


def inspector() -> CannedInspector:
    """Return the Inspector of a daemon with packages in several states."""
    return CannedInspector(contents=PACKAGES, nodes=NODES)


def request(target: str = "/", method: str = "GET", **headers: str) -> Request:
    """Return a request as a browser sends it. ``_`` in the name of a header stands for a hyphen."""
    path, _, query = target.partition("?")
    pairs = [each.partition("=") for each in query.split("&") if each]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, {name: (value,) for name, _, value in pairs}, {**HOST, **named}, b"")


@asynccontextmanager
async def opened(folder: Path, answers: Inspector) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    """Yield the one-time address of a daemon's page, and an HTTP client that has not opened this address yet."""
    path = folder / "s"
    async with (
        open_debug_server(path, answers),
        open_dashboard(DebugClient(path, exchange_in_thread)) as address,
        httpx.AsyncClient(base_url=address.partition("?")[0], follow_redirects=True, timeout=60) as client,
    ):
        yield address, client
