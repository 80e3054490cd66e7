"""The variables of this process's environment that child processes may inherit. Pure.

The embedded control plane inherits the daemon's environment, because users set proxies and paths there. Hooks and Helm get
environments of their own; `child_environment` also filters the variables that the option `--hook-env` passes on to hooks. The
variables that systemd sets for a service (sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3)) are not inherited, because a
child that has them could report "ready" or "stopping" for the daemon, or use its sockets.
"""

from collections.abc import Mapping
from typing import Final

_NOT_INHERITED: Final = ("NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")

NO_BYTECODE: Final[Mapping[str, str]] = {"PYTHONDONTWRITEBYTECODE": "1"}
"""The variable that programs of a package get, so that a Python program writes no bytecode caches beside the files that it
imports from the package.
"""


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` without the variables that children must not have."""
    return {name: value for name, value in environ.items() if not name.startswith(_NOT_INHERITED)}
