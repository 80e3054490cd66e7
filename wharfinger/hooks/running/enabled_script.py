"""The enabled script, with which a package decides whether it is enabled (spec hook-protocol §5.6, spec/runtime §4.2).

The script is run like a hook, with values on which its decision may depend, and answers in a file: ``true`` or ``false`` and
nothing else. An unclear answer is an error and never counts as "no", because a "no" uninstalls the package.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.runner import HookRun, HookRunner
from wharfinger.kube.service_account import ServiceAccount

log = logging.getLogger(__name__)

SCRIPT: Final = "enabled"
RESULT: Final = "MODULE_ENABLED_RESULT"
REASON: Final = "MODULE_ENABLED_REASON"
WALL_S: Final = 30.0
"""The time limit of the script: all other work of the package waits for the script, and the script only has to read values."""
_MAX_REASON_CHARS: Final = 1024
_ANSWERS: Final = {b"true": True, b"false": False}


@dataclass(frozen=True, slots=True)
class EnabledAnswer:
    """The answer of the script; ``reason`` is free text in one line, "" if the script gave no reason."""

    enabled: bool
    reason: str


async def run_enabled_script(
    runner: HookRunner,
    package: Path,
    values: JsonObject,
    config_values: JsonObject,
    *,
    masked: Callable[[str], str],
    credentials: bool = False,
    account: ServiceAccount | None = None,
) -> EnabledAnswer | None:
    """Run the enabled script of the package in this folder, and return its answer; None if there is no script that can be run.

    ``masked`` removes secrets from a text. ``masked`` is called with the unchanged answer of the script, because a secret of
    several lines is no longer recognized once the text is cut or joined into one line. With ``credentials``, the script may
    use the daemon's cluster; if ``account`` is given, the script acts as this service account.

    Raises HookError if the script fails, takes longer than WALL_S or than the runner allows, or answers anything but ``true`` or
    ``false``.
    """
    script = await trio.to_thread.run_sync(_runnable, package)
    if script is None:
        return None
    run = HookRun(SCRIPT, script, script.parent, (), values, config_values, answers=(RESULT, REASON), wall_s=WALL_S)
    outcome = await runner.run(replace(run, credentials=credentials, account=account))
    if not outcome.succeeded:
        raise HookError(SCRIPT, f"the script failed: {outcome.exit_description}", transient=True)
    said = outcome.answers[RESULT].strip()
    if said not in _ANSWERS:
        shown = repr(masked(said.decode(errors="replace"))[:60]) if said else "nothing"
        raise HookError(SCRIPT, f"bad enabled result: expected true or false, found {shown}", file=RESULT)
    reason = " ".join(masked(outcome.answers[REASON].decode(errors="replace")).split())
    return EnabledAnswer(_ANSWERS[said], reason[:_MAX_REASON_CHARS])


def why_not_run(script: Path) -> str:
    """Return why an existing enabled script is not run; empty if it is run, or if the package has no script. Blocking."""
    if not script.exists() or (script.is_file() and os.access(script, os.X_OK)):
        return ""
    return "it is not executable, so it is ignored; run chmod +x to use it"


def _runnable(package: Path) -> Path | None:
    """Return the script if it exists and can be run. Blocking."""
    script = package.absolute() / SCRIPT
    try:
        script.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(SCRIPT, f"it cannot be read: {error.strerror or error}", transient=True) from error
    if why := why_not_run(script):
        log.warning("%s: %s", script, why)
        return None
    return script
