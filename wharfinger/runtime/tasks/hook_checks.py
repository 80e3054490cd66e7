"""The checks of settings and of readiness, which an executable with several hooks can provide in addition to its hooks.

A check is a run of the executable that changes nothing. The exit status of the run is the answer, and its stderr is the reason
for a failure (spec hook-protocol §1.5). The check of settings runs when the package is configured, after the settings were
validated with the schema. The check of readiness runs once the workloads are ready, and is repeated until it succeeds. A
package has at most one check of each kind.
"""

from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.hooks.running.discovery import Hook, HookKind
from wharfinger.hooks.watching import contexts
from wharfinger.packages.settings.values import SettingsError
from wharfinger.runtime.package.events import Progressed
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.hook_runs import ask_hook, snapshots_of

READINESS: Final = "readiness"
READY_AGAIN_S: Final = 5.0
"""The time between two readiness checks."""


async def check_by_hook(instance: Instance, tools: Tools, host: Host, settings: JsonObject, values: JsonObject) -> None:
    """Run the package's own check of the effective settings, if the package has one. Raises SettingsError if the check
    fails.
    """
    hook = _of_kind(instance, HookKind.SETTINGS_CHECK)
    if hook is None:
        return
    if why := await ask_hook(instance, tools, host, hook, (), settings=settings, values=values):
        raise SettingsError([Problem("", f"{hook.name} refuses the settings: {why}")])


async def await_ready_by_hook(instance: Instance, tools: Tools, host: Host) -> None:
    """Run the package's readiness hook, if the package has one, until it succeeds. Each failure is reported with the reason
    ``NotReady``.
    """
    hook = _of_kind(instance, HookKind.READINESS)
    if hook is None:
        return
    while why := await _ask_ready(instance, tools, host, hook):
        host.emit(instance, Progressed(Stage.SCALED, "NotReady", f"{hook.name}: {why}"))
        with waiting(tools):
            await trio.sleep(READY_AGAIN_S)


async def _ask_ready(instance: Instance, tools: Tools, host: Host, hook: Hook) -> str:
    context = contexts.helm_binding(READINESS, snapshots_of(instance, hook))
    settings = instance.configuration.configured.settings
    return await ask_hook(
        instance, tools, host, hook, (context,), settings=settings, values=instance.configuration.values
    )


def _of_kind(instance: Instance, kind: HookKind) -> Hook | None:
    return next((hook for hook in instance.files.hooks if hook.kind is kind), None)
