"""The process at the other end of a Unix socket, as reported by the kernel (unix(7), SO_PEERCRED).

The kernel records the ids when the peer connects, so a process cannot change them later.
"""

import socket
import struct
from typing import Final, NamedTuple

import trio

_CREDENTIALS: Final = struct.Struct("3i")


class Peer(NamedTuple):
    """A process: its process id, its user id and its group id."""

    pid: int
    uid: int
    gid: int


def peer_of(stream: trio.abc.Stream) -> Peer | None:
    """Return the peer of a connection over a Unix socket; None for any other connection, or if the kernel does not report it."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return None
    try:
        found = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    return Peer(*_CREDENTIALS.unpack(found))
