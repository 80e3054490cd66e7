"""The process at the other end of a Unix socket, as the kernel names it (unix(7), SO_PEERCRED).

The numbers are those of the moment at which the peer connected, so a process cannot change them later.
"""

import socket
import struct
from typing import Final, NamedTuple

import trio

_CREDENTIALS: Final = struct.Struct("3i")


class Peer(NamedTuple):
    """A process: its number, and its user and group."""

    pid: int
    uid: int
    gid: int


def peer_of(stream: trio.abc.Stream) -> Peer | None:
    """Return the peer of a connection over a Unix socket; None if it is another one, or the kernel does not tell."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family != socket.AF_UNIX:
        return None
    try:
        found = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    return Peer(*_CREDENTIALS.unpack(found))
