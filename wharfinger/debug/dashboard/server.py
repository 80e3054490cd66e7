"""The HTTP server of the dashboard: it listens on this machine only, and admits a single browser."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.dashboard.gate import TOKEN, TOKEN_S, Gate
from wharfinger.debug.dashboard.pages import Pages
from wharfinger.debug.dashboard.routes import make_dashboard_handler
from wharfinger.debug.dashboard.source import AnswerCache
from wharfinger.debug.errors import DebugError
from wharfinger.httpd.server import HttpLimits, open_server

HOST: Final = "127.0.0.1"
LIMITS: Final = HttpLimits(
    header_bytes=16 * 1024, body_bytes=0, idle_s=30, header_read_s=5, body_read_s=5, write_s=30, connections=64
)


class DashboardPortError(DebugError):
    """The dashboard cannot listen on its port."""


@asynccontextmanager
async def open_dashboard(client: DebugClient, port: int = 0) -> AsyncIterator[str]:
    """Serve the dashboard until the ``async with`` block is left. Yields an address that can be opened once. Raises
    DashboardPortError.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=HOST)
    except OSError as error:
        why = error.strerror or error
        raise DashboardPortError(f"cannot listen on {HOST}:{port}: {why}; choose another --port") from error
    bound: int = listeners[0].socket.getsockname()[1]
    gate = new_gate(bound, trio.current_time())
    handler = make_dashboard_handler(Pages(AnswerCache(client)), gate)
    async with open_server(listeners, handler, LIMITS):
        yield f"http://{HOST}:{bound}{gate.folder}?{TOKEN}={gate.token}"


def new_gate(port: int, now_s: float) -> Gate:
    """Return a gate with new secrets. The cookie's name contains the port, so that two dashboards on one machine do not overwrite
    each other's cookie.
    """
    token, session, folder = (secrets.token_urlsafe(32) for _ in range(3))
    return Gate(token, session, f"wharfinger-{port}", now_s + TOKEN_S, f"/{folder}/")
