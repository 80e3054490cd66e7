"""The reader of hooks' configurations. The reader runs a hook with ``--config``. It runs a file that contains several hooks with
the arguments ``hook config`` (spec hook-protocol §1.3).

A hook is foreign code, so it is contained as in a run: it has a time limit, no input, bounded output, no home, no cluster and no
variables of a run. Answers are cached, because packages are loaded far more often than they change. While an answer is in the
cache, a file is run again only if its content, its command line, its working folder or its variables have changed.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.hooks.config.config import MAX_BYTES
from wharfinger.hooks.containment.contained_run import open_cell
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.containment.hook_environment import HOME, KUBECONFIG, NO_HOME, hook_environment
from wharfinger.hooks.containment.hook_users import remove_remains_of
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.hook_files import HookFile
from wharfinger.hooks.running.log_lines import last_words
from wharfinger.hooks.shell_library import missing_library_advice
from wharfinger.process.child import run_child
from wharfinger.process.command import Ending, Limits, Outcome
from wharfinger.process.environment import NO_BYTECODE
from wharfinger.process.errors import ProcessError, SpawnError
from wharfinger.process.ledger import ProcessLedger

CONFIG_ARGUMENTS: Final = ("--config",)
BATCH_ARGUMENTS: Final = ("hook", "config")
CONFIG_LIMITS: Final = Limits(wall_s=30.0, stdout_bytes=MAX_BYTES)
_CACHE_BYTES: Final = 8 * 1024 * 1024
_CACHE_ENTRIES: Final = 4_096
_BLOCK: Final = 1024 * 1024
_ADVICE: Final = (
    "; a file that batchHooks names, or a compiled file without an extension, must print its hooks for `hook config`; "
    "if it is a single hook and answers --config, give its name an extension"
)


class ConfigReader(Protocol):
    """A reader of hooks' configurations. Raises HookError if a hook does not answer."""

    async def config_of(self, hook: HookFile) -> bytes:
        """Return the unparsed text of the configuration that the hook prints."""
        ...


class ProcessConfigReader:
    """A ConfigReader that runs the hooks.

    It caches answers by the content of the hook's file and the way in which the hook is run, and drops the least recently used
    answer when the cache is full.
    """

    def __init__(
        self,
        ledger: ProcessLedger | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        limits: Limits = CONFIG_LIMITS,
        containment: Containment = NO_CONTAINMENT,
    ) -> None:
        """Give every hook ``environment``, by default the allowed part of this process's environment."""
        self._ledger = ledger
        given = hook_environment(os.environ).variables if environment is None else environment
        self._environment = {HOME: NO_HOME, KUBECONFIG: os.devnull, **given, **NO_BYTECODE}
        self._containment = containment
        self._limits = containment.limits(limits)
        self._kept: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._kept_bytes = 0

    async def config_of(self, hook: HookFile) -> bytes:
        """Return what the hook prints. Raises HookError if the hook cannot be started, fails, or takes too long."""
        argv = (str(hook.executable), *hook.argv)
        try:
            digest = await trio.to_thread.run_sync(_digest, Path(argv[-1]))
        except OSError as error:
            raise HookError(hook.name, f"it cannot be read: {error.strerror or error}", transient=True) from error
        told = (f"{name}={value}" for name, value in sorted(hook.environment.items()))
        key = (digest, str(hook.config_cwd), *argv, *_question(hook), *told)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        answer = await self._ask(hook, argv)
        self._keep(key, answer)
        return answer

    async def _ask(self, hook: HookFile, argv: tuple[str, ...]) -> bytes:
        environment = {**self._environment, **hook.environment}
        try:
            async with open_cell(self._containment, hook.name) as cell:
                command = await cell.command((*argv, *_question(hook)), hook.config_cwd, environment)
                outcome = await run_child(command, self._limits, ledger=self._ledger)
                cell.ended(outcome)
                if cell.user is not None:
                    await trio.to_thread.run_sync(remove_remains_of, cell.user.uid)
        except SpawnError as error:
            if "exec format error" in error.why:
                why = (
                    "cannot get its configuration: exec format error; add a shebang line such as #!/usr/bin/env bash "
                    "at its beginning, or build it for this architecture"
                )
                raise HookError(hook.name, why) from error
            raise HookError(hook.name, f"cannot get its configuration: {error}", transient=error.transient) from error
        except ProcessError as error:
            raise HookError(hook.name, f"cannot get its configuration: {error}", transient=error.transient) from error
        if not outcome.ok:
            raise _failed(hook, outcome)
        return outcome.stdout

    def _keep(self, key: tuple[str, ...], answer: bytes) -> None:
        if not answer:
            return
        self._kept_bytes += len(answer) - len(self._kept.get(key, b""))
        self._kept[key] = answer
        self._kept.move_to_end(key)
        while self._kept_bytes > _CACHE_BYTES or len(self._kept) > _CACHE_ENTRIES:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped)


def _question(hook: HookFile) -> tuple[str, ...]:
    """Return the arguments with which a hook is run to print its configuration."""
    return BATCH_ARGUMENTS if hook.batch else CONFIG_ARGUMENTS


def _failed(hook: HookFile, outcome: Outcome) -> HookError:
    """Return the error for a hook that failed. The error is transient if the hook ran out of time or was killed from outside. It
    is permanent if the hook failed by itself or wrote too much output.
    """
    said = last_words(outcome.stderr)
    why = f"cannot get its configuration: {' '.join(_question(hook))} ended with {outcome.describe()}"
    by_itself = outcome.ending is Ending.EXITED and outcome.returncode > 0
    return HookError(
        hook.name,
        (f"{why}: {said}" if said else f"{why} and wrote nothing to stderr")
        + (_ADVICE if hook.batch else missing_library_advice(said)),
        transient=not by_itself and outcome.ending is not Ending.OUTPUT_LIMIT,
    )


def _digest(file: Path) -> str:
    """Return the hash of the file's content. Blocking."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
