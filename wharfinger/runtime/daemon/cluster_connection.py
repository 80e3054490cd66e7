"""The parameters of the daemon's connection to its cluster. A child process reads them.

The ``kubernetes`` package, which reads kubeconfigs, would take 14 MiB of memory for as long as the daemon runs, so a child
process imports it. The daemon itself imports the package only if it has to, for example for a kubeconfig with exec plugins or
auth providers, because their credentials have to be renewed.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.connection import Connection, load_connection
from wharfinger.cluster.connection_program import MAX_BYTES, arguments, decoded
from wharfinger.formats.errors import FormatError
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits
from wharfinger.process.environment import child_environment
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

_PROGRAM: Final = "wharfinger.cluster.connection_program"
_LIMITS: Final = Limits(wall_s=30.0, stdout_bytes=MAX_BYTES)
_RENEWED: Final = (b"exec", b"auth-provider")
"""The words in a kubeconfig that mean that its credentials have to be renewed. If such a word occurs in another place of the
file, the only effect is that the daemon needs more memory.
"""


async def read_connection(
    kubeconfig: Path | None, context: str, certificates: Path, ledger: ProcessLedger | None
) -> Connection:
    """Return the connection, as `load_connection` does. If the child process fails, this process reads the kubeconfig itself.

    Raises ConnectionConfigError.
    """
    if not await trio.to_thread.run_sync(_is_for_this_process, kubeconfig):
        # -P: files in the working folder must never be imported.
        argv = (sys.executable, "-P", "-m", _PROGRAM, *arguments(kubeconfig, context, certificates))
        try:
            command = Command(argv, Path.cwd(), child_environment(os.environ))
            outcome = await run_child(command, _LIMITS, ledger=ledger)
            if outcome.ok:
                return decoded(outcome.stdout)
            why = outcome.describe()
        except (ProcessError, FormatError, OSError) as error:
            why = str(error)
        log.debug("the kubeconfig is read in this process, because a child process could not read it: %s", why)
    # On cancellation, the thread is abandoned, because an exec plugin of the kubeconfig may hang forever.
    return await trio.to_thread.run_sync(load_connection, kubeconfig, context, certificates, abandon_on_cancel=True)


def _is_for_this_process(kubeconfig: Path | None) -> bool:
    """Return whether the daemon's process must read the kubeconfig itself, instead of a child process. This is the case if
    credentials in the kubeconfig may have to be renewed, or if the file can be read only once, like a pipe.
    """
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep) if kubeconfig is None else [str(kubeconfig)]
    paths = [Path(path) for path in named if path] or [Path("~/.kube/config").expanduser()]
    if any(os.path.exists(path) and not os.path.isfile(path) for path in paths):  # noqa: PTH110, PTH113 - these never raise
        return True
    return any(word in _content(path) for path in paths for word in _RENEWED)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
