"""A package's hooks, each with what it asks for: found on disk, then asked with ``--config`` (spec hook-protocol §1.2-§1.5).

One hook that cannot say what it wants fails the whole package, as the contract has it: running half of a package's hooks is
worse than none. Asking is running foreign code, so it has a time limit (each hook, and all of a package together), no input,
bounded output and no variable of a run; and the same file is asked once, since packages are loaded far more often than they
change.
"""

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.hooks.config import MAX_BYTES, HookConfig, read_hook_config
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.hook_files import HookFile, find_hook_files
from wharfinger.packages.definition import Layout
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Outcome
from wharfinger.process.environment import NO_BYTECODE, child_environment
from wharfinger.process.errors import ProcessError, SpawnError
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

CONFIG_ARGUMENT: Final = "--config"
CONFIG_LIMITS: Final = Limits(wall_s=30.0, stdout_bytes=MAX_BYTES)
DISCOVERY_S: Final = 120.0
"""For all hooks of a package together."""
_MAX_AT_ONCE: Final = 4
_MAX_REASON_CHARS: Final = 1024
_CACHE_BYTES: Final = 8 * 1024 * 1024
_CACHE_ENTRIES: Final = 4_096
_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook that may be run: ``executable`` with ``argv`` after it, in ``cwd``, ``environment`` added to the daemon's."""

    name: str
    executable: Path
    argv: tuple[str, ...]
    cwd: Path
    config: HookConfig
    environment: Mapping[str, str] = field(default_factory=dict)


class ConfigReader(Protocol):
    """Asks hooks for their configuration. Raises HookError where one does not answer."""

    async def config_of(self, hook: HookFile) -> bytes:
        """What the hook prints for ``--config``, unread."""
        ...


async def discover_hooks(package: Path, layout: Layout, reader: ConfigReader) -> tuple[Hook, ...]:
    """The hooks of the package in this folder, sorted by path. What looks wrong beside them is logged.

    ``layout`` decides where they run: those of an addon-operator module in the package's root, others in their own folder.
    Raises HookError (of kind HookConfigError where one asks for what cannot be): for the first by path, if several fail.
    """
    try:
        found = await trio.to_thread.run_sync(find_hook_files, package, layout)
    except OSError as error:
        raise HookError("hooks", f"the folder cannot be read: {error}", transient=True) from error
    for warning in found.warnings:
        log.warning("%s", warning)
    asking = _Asking(found.hooks, reader)
    with trio.move_on_after(DISCOVERY_S):
        async with trio.open_nursery() as nursery:
            for _ in range(_MAX_AT_ONCE):
                nursery.start_soon(asking.ask, name=f"configurations of {package}")
    return asking.hooks()


class _Asking:
    """Several tasks ask the hooks in their order. Where one fails, nobody behind it is asked any more: it decides."""

    def __init__(self, files: tuple[HookFile, ...], reader: ConfigReader) -> None:
        self._files = files
        self._reader = reader
        self._next = 0
        self._end = len(files)
        self._answers: dict[int, Hook | HookError] = {}
        self._scopes: dict[int, trio.CancelScope] = {}

    async def ask(self) -> None:
        """Ask one after the other until there are none left."""
        while self._next < self._end:
            number = self._next
            self._next += 1
            with trio.CancelScope() as self._scopes[number]:
                try:
                    self._answers[number] = await read_hook(self._files[number], self._reader)
                except HookError as error:
                    self._answers[number] = error
                    self._end = min(self._end, number)
                    for behind, scope in self._scopes.items():
                        if behind > number:
                            scope.cancel(reason="a hook before it failed")
            del self._scopes[number]

    def hooks(self) -> tuple[Hook, ...]:
        """All of them. Raises the HookError of the first that failed, or was not asked in time."""
        hooks: list[Hook] = []
        for number, file in enumerate(self._files):
            answer = self._answers.get(number)
            if answer is None:
                raise HookError(
                    file.name,
                    f"cannot get its configuration: the hooks of its package took longer than {DISCOVERY_S:g} s to tell theirs",
                    transient=True,
                )
            if isinstance(answer, HookError):
                raise answer
            hooks.append(answer)
        return tuple(hooks)


async def read_hook(file: HookFile, reader: ConfigReader) -> Hook:
    """One hook with its configuration. Raises HookError."""
    config = read_hook_config(await reader.config_of(file), hook=file.name)
    return Hook(file.name, file.executable, file.argv, file.cwd, config, file.environment)


class ProcessConfigReader:
    """A ConfigReader that runs the hooks. Answers are kept by content, the latest for as long as there is room."""

    def __init__(
        self,
        ledger: ProcessLedger | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        limits: Limits = CONFIG_LIMITS,
    ) -> None:
        """``environment`` is what hooks inherit (default: this process's)."""
        self._ledger = ledger
        self._environment = {**child_environment(os.environ if environment is None else environment), **NO_BYTECODE}
        self._limits = limits
        self._kept: OrderedDict[tuple[str, ...], bytes] = OrderedDict()
        self._kept_bytes = 0

    async def config_of(self, hook: HookFile) -> bytes:
        """What the hook prints for ``--config``. Raises HookError where it cannot be started, fails, or takes too long."""
        argv = (str(hook.executable), *hook.argv)
        try:
            digest = await trio.to_thread.run_sync(_digest, Path(argv[-1]))
        except OSError as error:
            raise HookError(hook.name, f"it cannot be read: {error}", transient=True) from error
        key = (digest, str(hook.config_cwd), *argv)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        answer = await self._ask(hook, argv)
        self._keep(key, answer)
        return answer

    async def _ask(self, hook: HookFile, argv: tuple[str, ...]) -> bytes:
        command = Command((*argv, CONFIG_ARGUMENT), hook.config_cwd, {**self._environment, **hook.environment})
        try:
            outcome = await run_child(command, self._limits, ledger=self._ledger)
        except SpawnError as error:
            if "exec format error" in error.why:
                why = (
                    "cannot get its configuration: exec format error; add a shebang line such as #!/usr/bin/env bash "
                    "as its first, or build it for this architecture"
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


def _failed(hook: HookFile, outcome: Outcome) -> HookError:
    """Out of time or killed from outside is worth another try; a hook that fails by itself is not."""
    said = outcome.stderr.decode(errors="replace").strip()[-_MAX_REASON_CHARS:]
    why = f"cannot get its configuration: {CONFIG_ARGUMENT} ended with {outcome.describe()}"
    by_itself = outcome.ending is Ending.EXITED and outcome.returncode > 0
    return HookError(
        hook.name,
        f"{why}: {said}" if said else f"{why} and wrote nothing to stderr",
        transient=not by_itself and outcome.ending is not Ending.OUTPUT_LIMIT,
    )


def _digest(file: Path) -> str:
    """The hash of the file's content. Blocking."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
