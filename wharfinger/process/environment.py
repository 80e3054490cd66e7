"""The variables of this process's environment that child processes may inherit. Pure.

The embedded control plane inherits the daemon's environment, because users set proxies and paths there. Hooks and Helm get
environments of their own, and what `--hook-env` passes on to hooks is checked here as well. The variables that systemd sets
for a service (sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3)) are not inherited: a child with them could report
"ready" or "stopping" for the daemon, or use its sockets.
"""

from collections.abc import Mapping
from typing import Final

_NOT_INHERITED: Final = ("NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")

NO_BYTECODE: Final[Mapping[str, str]] = {"PYTHONDONTWRITEBYTECODE": "1"}
"""The variable for programs of a package: a Python program must not write bytecode caches beside the files that it imports
from the package.
"""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` without the variables that children must not have."""
    return {name: value for name, value in environ.items() if not name.startswith(_NOT_INHERITED)}
