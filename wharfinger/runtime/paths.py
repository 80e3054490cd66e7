"""The paths of a daemon's state and debug socket, which are the same for the daemon and for the command line.

If no option names a state folder, it is the folder that STATE_VARIABLE names. If this variable is not set either, it is
``/var/lib/wharfinger`` for root, and ``$XDG_STATE_HOME/wharfinger`` or ``~/.local/state/wharfinger`` for other users. The state
folder contains ``journal.db``, ``store/``, ``deployed/`` and ``run/debug.sock``, among other files.
"""

import os
from pathlib import Path
from typing import Final

SOCKET_VARIABLE: Final = "WHARFINGER_SOCKET"
STATE_VARIABLE: Final = "WHARFINGER_STATE_DIR"
MAX_SOCKET_BYTES: Final = 107
"""The limit of unix(7) for the path of a socket: sun_path is 108 bytes with its terminator."""
STATE_DIR_WORDS: Final = (
    f"${STATE_VARIABLE}, or else /var/lib/wharfinger for root, and $XDG_STATE_HOME/wharfinger or "
    "~/.local/state/wharfinger for other users"
)
"""The text that stands for the default state folder in help texts. It is the same on each machine."""


def default_state_dir() -> Path:
    """Return the state folder that is used if no option names one."""
    if named := os.environ.get(STATE_VARIABLE):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/wharfinger")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "wharfinger"


def default_socket(state_dir: Path | None = None) -> Path:
    """Return the path of the debug socket of the daemon whose state folder is ``state_dir``. If ``state_dir`` is None, return the
    path that SOCKET_VARIABLE names; if the variable is not set, return the path in the default state folder.
    """
    if state_dir is None and (named := os.environ.get(SOCKET_VARIABLE)):
        return Path(named)
    return (state_dir or default_state_dir()) / "run" / "debug.sock"


def too_long_socket(path: Path) -> str:
    """Return a message with the path's size and the limit if the path is too long for a socket; otherwise an empty text."""
    size = len(os.fsencode(path))
    return (
        f"a path of {size} bytes is too long for a socket (at most {MAX_SOCKET_BYTES})"
        if size > MAX_SOCKET_BYTES
        else ""
    )
