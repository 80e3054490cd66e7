"""The hooks of a package with their configurations (spec hook-protocol §1.2-§1.5).

Hooks are found on disk, then run with ``--config``. A hook without a valid configuration fails the whole package, as the contract
prescribes, because running only some of a package's hooks is worse than running none. All hooks of a package together have one
time limit to print their configurations. An executable with several hooks is run with ``hook config``, and each of its hooks
becomes a `Hook` of its own. The hooks are in the order that the contract prescribes: by path, and in one executable by index.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import trio

from wharfinger.hooks.config.batch_hooks import read_batch
from wharfinger.hooks.config.bindings import UNBOUND, HookConfig, HookScope
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.config.webhooks import CONVERSION, MUTATING, VALIDATING
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import BATCH_ARGUMENTS, ConfigReader
from wharfinger.hooks.running.hook_files import FOLDER, MAX_HOOKS, HookFile, find_hook_files
from wharfinger.packages.definition.definition import Layout

log = logging.getLogger(__name__)

DISCOVERY_S: Final = 120.0
"""The time in which all hooks of a package together must print their configurations."""
_MAX_AT_ONCE: Final = 4


class HookKind(StrEnum):
    """The kind of a hook. SHELL is a hook with a file of its own, and BATCH a hook in an executable with several hooks.
    READINESS and SETTINGS_CHECK are further commands of such an executable: they report the readiness of the package, or check
    its settings.
    """

    SHELL = "shell"
    BATCH = "batch"
    READINESS = "readiness"
    SETTINGS_CHECK = "settings check"


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook that can be run: ``executable`` with ``argv``, in ``cwd``, with ``environment`` added to the variables of all hooks.

    A settings check has no binding. A readiness hook has the bindings that the configuration of its batch declares for it.
    """

    name: str
    executable: Path
    argv: tuple[str, ...]
    cwd: Path
    config: HookConfig
    environment: Mapping[str, str] = field(default_factory=dict)
    kind: HookKind = HookKind.SHELL


async def discover_hooks(
    package: Path,
    layout: Layout,
    reader: ConfigReader,
    *,
    scope: HookScope = HookScope.PACKAGE,
    batch: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    webhooks: bool = False,
    warn: Callable[[str], None] = log.warning,
) -> tuple[Hook, ...]:
    """Return the hooks of the package in this folder, sorted by path. ``warn`` gets a sentence for each suspicious file
    or configuration.

    ``layout`` decides where hooks run: hooks of an addon-operator module in the package's root, all others in their own folder.
    ``batch`` are the paths that the package declares as executables with several hooks; ``environment`` are the variables that
    identify the package to these executables. ``webhooks`` is true if the daemon has an admission server. Raises HookError
    (HookConfigError for an invalid configuration). If several hooks fail, the error of the first hook by path is raised.
    """
    try:
        found = await trio.to_thread.run_sync(lambda: find_hook_files(package, layout, scope=scope, batch=batch))
    except OSError as error:
        raise HookError(FOLDER, f"the folder cannot be read: {error}", transient=True) from error
    for warning in found.warnings:
        warn(warning)
    files = tuple(
        replace(file, environment={**file.environment, **(environment or {})}) if file.batch else file
        for file in found.hooks
    )
    asking = _Asking(files, reader, scope)
    with trio.move_on_after(DISCOVERY_S):
        async with trio.open_nursery() as nursery:
            for _ in range(_MAX_AT_ONCE):
                nursery.start_soon(asking.ask, name=f"configurations of {package}")
    hooks = asking.hooks()
    _check_together(hooks)
    for hook in hooks:
        if not webhooks:
            _check_served(hook, layout, warn)
        for warning in hook.config.warnings:
            warn(f"hook {hook.name}: {warning}")
    return hooks


def _check_together(hooks: tuple[Hook, ...]) -> None:
    """Check the limits that concern all hooks of a package together. Raises HookError."""
    if len(hooks) > MAX_HOOKS:
        raise HookError(FOLDER, f"{len(hooks)} hooks, over the limit of {MAX_HOOKS} of one package")
    for kind in (HookKind.READINESS, HookKind.SETTINGS_CHECK):
        names = [hook.name for hook in hooks if hook.kind is kind]
        if len(names) > 1:
            raise HookError(names[1], f"expected at most one {kind} in a package, found {names[0]} as well")


def _check_served(hook: Hook, layout: Layout, warn: Callable[[str], None]) -> None:
    """Refuse the webhooks of a hook, because the daemon has no admission server. In a module folder of addon-operator, they only
    cause a warning.

    Raises HookConfigError.
    """
    config = hook.config
    asked = {VALIDATING: config.validating, MUTATING: config.mutating, CONVERSION: config.conversions}
    unserved = [key for key, bindings in asked.items() if bindings]
    if unserved and layout is not Layout.MODULE_FOLDER:
        why = (
            "needs an admission server, but this daemon has none; start it with --admission "
            "(a daemon with --shard cannot have one)"
        )
        raise HookConfigError(hook.name, tuple(f"{key} {why}" for key in unserved))
    for key in unserved:
        warn(f"hook {hook.name}: {key} needs --admission, without which no request reaches it")


class _Asking:
    """The shared state of several tasks that ask hooks for their configurations, in order. If a hook fails, the hooks after it
    in this order need not answer, because only the first failed hook is reported.
    """

    def __init__(self, files: tuple[HookFile, ...], reader: ConfigReader, scope: HookScope) -> None:
        self._files = files
        self._reader = reader
        self._scope = scope
        self._next = 0
        self._end = len(files)
        self._answers: dict[int, tuple[Hook, ...] | HookError] = {}
        self._scopes: dict[int, trio.CancelScope] = {}

    async def ask(self) -> None:
        """Request the configuration of one hook after the other, until no hook is left."""
        while self._next < self._end:
            number = self._next
            self._next += 1
            with trio.CancelScope() as self._scopes[number]:
                try:
                    self._answers[number] = await read_hooks(self._files[number], self._reader, self._scope)
                except HookError as error:
                    self._answers[number] = error
                    self._end = min(self._end, number)
                    for behind, scope in self._scopes.items():
                        if behind > number:
                            scope.cancel(reason="a hook before it failed")
            del self._scopes[number]

    def hooks(self) -> tuple[Hook, ...]:
        """Return all hooks. Raises the HookError of the first hook that failed, or that did not answer in time."""
        hooks: list[Hook] = []
        for number, file in enumerate(self._files):
            answer = self._answers.get(number)
            if answer is None:
                raise HookError(
                    file.name,
                    "cannot get its configuration: not all hooks of the package printed their configurations within "
                    f"{DISCOVERY_S:g} s",
                    transient=True,
                )
            if isinstance(answer, HookError):
                raise answer
            hooks += answer
        return tuple(hooks)


async def read_hook(file: HookFile, reader: ConfigReader, scope: HookScope = HookScope.PACKAGE) -> Hook:
    """Read one hook that has a file of its own, with its configuration. Raises HookError."""
    config = read_hook_config(await reader.config_of(file), hook=file.name, scope=scope)
    return Hook(file.name, file.executable, file.argv, file.cwd, config, file.environment)


async def read_hooks(file: HookFile, reader: ConfigReader, scope: HookScope = HookScope.PACKAGE) -> tuple[Hook, ...]:
    """Read all hooks of one file: the file itself, or the hooks in a batch. Raises HookError."""
    if not file.batch:
        return (await read_hook(file, reader, scope),)
    batch = read_batch(await reader.config_of(file), hook=file.name, scope=scope)
    hooks = [
        _in_batch(file, f"{file.name}:{entry.name}:{index}", ("run", str(index)), entry.config, HookKind.BATCH)
        for index, entry in enumerate(batch.hooks)
    ]
    if batch.readiness is not None:
        hooks.append(_in_batch(file, f"{file.name}-readiness", ("ready",), batch.readiness, HookKind.READINESS))
    if batch.settings_check:
        hooks.append(_in_batch(file, f"{file.name}-check", ("check",), UNBOUND, HookKind.SETTINGS_CHECK))
    return tuple(hooks)


def _in_batch(file: HookFile, name: str, asked: tuple[str, ...], config: HookConfig, kind: HookKind) -> Hook:
    argv = (*file.argv, BATCH_ARGUMENTS[0], *asked)
    return Hook(name, file.executable, argv, file.cwd, config, file.environment, kind)
