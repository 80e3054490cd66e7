"""The debug server: it answers from an Inspector, on a Unix socket that only its owner and root can open.

It listens on a socket file and not on a port, because a client can read the whole state of the daemon. The mode of the file
is the access control, also on machines with many users. :mod:`wharfinger.debug.server.socket_file` creates the file.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from wharfinger.debug.addresses import MAX_SETTINGS
from wharfinger.debug.server.activation import inherited_listener
from wharfinger.debug.server.routes import make_handler
from wharfinger.debug.server.socket_file import bind_socket_file, remove_socket_file
from wharfinger.httpd.server import HttpLimits, open_server
from wharfinger.runtime.inspector import Inspector

LIMITS: Final = HttpLimits(
    header_bytes=16 * 1024,
    body_bytes=MAX_SETTINGS,
    idle_s=30,
    header_read_s=5,
    body_read_s=5,
    write_s=30,
    connections=64,
    of_process=32,
    linger_bytes=2 * MAX_SETTINGS,
    useless_pause_s=0.02,
    closed_pause_s=0.01,
    piece_pause_s=0.01,
)


@asynccontextmanager
async def open_debug_server(
    path: Path, inspector: Inspector, *, listener: trio.SocketListener | None = None
) -> AsyncIterator[None]:
    """Serve ``inspector`` on ``path`` until the ``async with`` block is left; requests in flight are still answered.

    If a ``listener`` is given, or inherited from systemd, the server uses it and does not touch ``path``, because the socket file
    belongs to systemd. Raises DebugSocketError.
    """
    listener = listener or inherited_listener(os.environ)
    if listener is not None:
        async with open_server([listener], make_handler(inspector), LIMITS):
            yield
        return
    file = bind_socket_file(path)
    own = trio.SocketListener(trio.socket.from_stdlib_socket(file.socket))
    async with open_server([own], make_handler(inspector), LIMITS):
        try:
            yield
        finally:
            remove_socket_file(file)
