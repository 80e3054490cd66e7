"""A listening socket inherited from systemd (socket activation, sd_listen_fds(3))."""

import os
import socket
from collections.abc import MutableMapping
from typing import Final

import trio

from wharfinger.debug.errors import DebugSocketError

FIRST_DESCRIPTOR: Final = 3
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def inherited_listener(environment: MutableMapping[str, str]) -> trio.SocketListener | None:
    """Return the listener that systemd passed to this process, or None. Pass ``os.environ``.

    The variables of systemd are removed from ``environment``, and the descriptor is closed on exec, so that no child process uses
    them. Raises DebugSocketError if systemd passed anything other than exactly one listening Unix stream socket.
    """
    pid, count, _ = (environment.pop(name, "") for name in _VARIABLES)
    if pid != str(os.getpid()):
        return None
    if count != "1":
        raise DebugSocketError(
            f"systemd passed {count or 'no'} sockets; exactly one is expected, the debug socket; check wharfinger.socket"
        )
    try:
        inherited = socket.socket(fileno=FIRST_DESCRIPTOR)
    except OSError as error:
        raise DebugSocketError(
            f"descriptor {FIRST_DESCRIPTOR} is not a socket although LISTEN_FDS names it: {error.strerror};"
            " check wharfinger.socket"
        ) from error
    inherited.set_inheritable(False)
    if (
        inherited.family != socket.AF_UNIX
        or inherited.type != socket.SOCK_STREAM
        or not inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ):
        inherited.close()
        raise DebugSocketError(
            "systemd passed a socket that is not a listening Unix stream socket; check ListenStream in wharfinger.socket"
        )
    return trio.SocketListener(trio.socket.from_stdlib_socket(inherited))
