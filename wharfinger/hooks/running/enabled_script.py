"""The script by which a package itself says whether it wants to be enabled (spec hook-protocol §5.6, spec/runtime §4.2).

It is run as a hook is, with the values it may judge by, and answers in a file: ``true`` or ``false`` and nothing else. Whatever
is not a clear answer is an error, never a no: a no uninstalls.
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

log = logging.getLogger(__name__)

SCRIPT: Final = "enabled"
RESULT: Final = "MODULE_ENABLED_RESULT"
REASON: Final = "MODULE_ENABLED_REASON"
WALL_S: Final = 30.0
"""It stands in the way of everything else of its package, and only has to look at values."""
_MAX_REASON_CHARS: Final = 1024
_ANSWERS: Final = {b"true": True, b"false": False}


@dataclass(frozen=True, slots=True)
class EnabledAnswer:
    """What the script said; ``reason`` is free text in one line, "" where it gave none."""

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
) -> EnabledAnswer | None:
    """Ask the script of the package in this folder; None where it has none that can be run.

    ``masked`` takes what is secret out of a text. It is given what the script said as it was written: once that is one line, and
    cut, a secret of several lines is not recognized in it any more. ``credentials`` are those of the daemon's cluster.

    Raises HookError where the script fails, takes longer than WALL_S (or the runner allows), or answers anything else.
    """
    script = await trio.to_thread.run_sync(_runnable, package)
    if script is None:
        return None
    run = HookRun(SCRIPT, script, script.parent, (), values, config_values, answers=(RESULT, REASON), wall_s=WALL_S)
    outcome = await runner.run(replace(run, credentials=credentials))
    if not outcome.succeeded:
        raise HookError(SCRIPT, f"the script failed: {outcome.exit_description}", transient=True)
    said = outcome.answers[RESULT].strip()
    if said not in _ANSWERS:
        shown = repr(masked(said.decode(errors="replace"))[:60]) if said else "nothing"
        raise HookError(SCRIPT, f"bad enabled result: it must be true or false, is {shown}", file=RESULT)
    reason = " ".join(masked(outcome.answers[REASON].decode(errors="replace")).split())
    return EnabledAnswer(_ANSWERS[said], reason[:_MAX_REASON_CHARS])


def is_without_say(script: Path) -> str:
    """Why an enabled script that is there is not asked; empty if it is, or if there is none. Blocking."""
    if not script.exists() or (script.is_file() and os.access(script, os.X_OK)):
        return ""
    return "it is there but not executable, so it has no say; chmod +x makes it count"


def _runnable(package: Path) -> Path | None:
    """The script, if there is one to ask. Blocking."""
    script = package.absolute() / SCRIPT
    try:
        script.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HookError(SCRIPT, f"it cannot be looked at: {error}", transient=True) from error
    if why := is_without_say(script):
        log.warning("%s: %s", script, why)
        return None
    return script
