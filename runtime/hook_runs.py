"""Running a package's hooks: one place where a hook meets values, object patches and the record.

The order after a run (spec/runtime §7.3): object patches are applied (of a run that failed, those that say they are to be:
hooks report failures with them); the values patch of a run that succeeded is checked against the schema, recorded, and only
then true. A hook that failed in any of this has failed, and is run again with fresh snapshots.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object
from wharfinger.hooks.config import KubernetesBinding
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.object_operations import despite_failure, read_operations
from wharfinger.hooks.object_patches import apply_operations
from wharfinger.hooks.package_hooks import Inbox, PackageHooks
from wharfinger.hooks.runner import HookOutcome, HookRun
from wharfinger.hooks.values_patch import apply_values_patch, compacted
from wharfinger.packages.values import SettingsError, check_values, hook_values
from wharfinger.queue.service import TaskFailed
from wharfinger.runtime.failures import EXPECTED, Expected, Failure, HookRunError, classify
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.instance import Instance, Reporter, Tools
from wharfinger.runtime.status import Stage

log = logging.getLogger(__name__)


async def run_hook(
    instance: Instance, tools: Tools, reporter: Reporter, hook: Hook, contexts: Sequence[JsonObject]
) -> bool:
    """Run one hook once and take over what it left; True if it changed the values.

    Raises HookRunError where it failed, and what applying can raise.
    """
    instance.running_hooks += 1
    try:
        async with tools.hook_slots:
            changed = await _run(instance, tools, reporter, hook, contexts)
    except EXPECTED as error:
        reporter.hook_ran(instance, hook.name, instance.masked(str(error)))
        raise
    finally:
        instance.running_hooks -= 1
        if not instance.running_hooks:
            instance.hooks_quiet.set()
            instance.hooks_quiet = trio.Event()
    reporter.hook_ran(instance, hook.name, "")
    return changed


async def wait_hooks_quiet(instance: Instance) -> None:
    """Return once no hook of the package runs."""
    while instance.running_hooks:
        await instance.hooks_quiet.wait()


async def _run(
    instance: Instance, tools: Tools, reporter: Reporter, hook: Hook, contexts: Sequence[JsonObject]
) -> bool:
    definition = instance.loaded()
    outcome = await tools.hook_runner.run(
        HookRun(
            name=hook.name,
            executable=hook.executable,
            argv=hook.argv,
            cwd=hook.cwd,
            environment={**hook.environment, **_identity_variables(instance)},
            contexts=tuple(contexts),
            values=hook_values(definition, reporter.global_values(), instance.values),
            config_values=hook_values(definition, {}, instance.wanted_settings.settings),
        )
    )
    for line in outcome.log_lines:
        log.info("%s: %s: %s", instance.id.name, hook.name, instance.masked(line))
    problems = await _apply_object_patches(instance, tools, hook, outcome)
    if not outcome.succeeded:
        raise HookRunError(hook.name, outcome.exit_description)
    if problems:
        raise HookRunError(hook.name, "; ".join(problems))
    if outcome.config_values_patch:
        raise HookRunError(
            hook.name,
            "it patches the configuration values, which are the resource's spec.settings and are not a hook's",
        )
    return bool(outcome.values_patch) and await _patch_values(instance, tools, hook, outcome.values_patch)


async def _apply_object_patches(instance: Instance, tools: Tools, hook: Hook, outcome: HookOutcome) -> tuple[str, ...]:
    if not outcome.object_patches:
        return ()
    try:
        operations = read_operations(outcome.object_patches, hook=hook.name)
    except HookError as error:
        if outcome.succeeded:
            raise
        return (str(error),)
    if not outcome.succeeded:
        operations = despite_failure(operations)
    failures = await apply_operations(tools.cluster, tools.filters, operations, namespace=instance.isolation)
    return tuple(str(failure) for failure in failures)


async def _patch_values(instance: Instance, tools: Tools, hook: Hook, patch: Sequence[JsonValue]) -> bool:
    """Record a values patch and make it true. Raises HookRunError where it cannot be, ClusterError where it is not recorded."""
    definition, record = instance.loaded(), await instance.recorded(tools.cluster)
    root = definition.camel
    async with instance.values_lock:  # hooks of several queues may end at once
        try:
            document = apply_values_patch({root: instance.values}, patch, root=root)
            values = as_object(document[root], root)
            check_values(definition, values)
            patches = compacted(record.state.patches, patch, {root: instance.values})
        except (FormatError, SettingsError) as error:
            raise HookRunError(hook.name, f"cannot apply values patch: {error}") from error
        if values == instance.values:
            return False
        await record.update(lambda state: state.patched(patches))
        instance.values = values
        return True


def _identity_variables(instance: Instance) -> dict[str, str]:
    if isinstance(instance.id, AppId):
        return {"APPLICATION_NAME": instance.id.instance, "APPLICATION_NAMESPACE": instance.id.namespace}
    return {"MODULE_NAME": instance.id.name}


@dataclass(frozen=True, slots=True)
class EventHookTask:
    """What waits in a hook's inbox, told to the hook; in a lane of its own beside the package's pipeline."""

    hook: Hook
    inbox: Inbox
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    reporter: Reporter

    @property
    def name(self) -> str:
        """``hooks/10-labels.sh events``; the lane says which queue."""
        return f"{self.hook.name} events"

    async def execute(self) -> None:
        """Run the hook for what has gathered. Raises TaskFailed; what it was told waits on then."""
        occurrences = self.inbox.offered()
        if not occurrences:
            return
        try:
            changed = await run_hook(
                self.instance, self.tools, self.reporter, self.hook, self.hooks.contexts(self.hook, occurrences)
            )
        except EXPECTED as error:
            if not occurrences[0].binding.allow_failure:
                raise failed_event(self.instance, self.reporter, self.hook, error) from error
            log.warning("%s: %s failed, which it is allowed to: %s", self.instance.id, self.hook.name, error)
            changed = False
        self.inbox.told(occurrences)
        if changed:
            self.reporter.values_changed(self.instance, self.hook.name)


@dataclass(frozen=True, slots=True)
class SynchronizeTask:
    """The first run for a binding that its package does not wait for."""

    hook: Hook
    binding: KubernetesBinding
    hooks: PackageHooks
    instance: Instance
    tools: Tools
    reporter: Reporter

    @property
    def name(self) -> str:
        """``hooks/10-labels.sh synchronization of pods``."""
        return f"{self.hook.name} synchronization of {self.binding.name}"

    async def execute(self) -> None:
        """Synchronise, then let the binding's events flow. Raises TaskFailed."""
        try:
            changed = await synchronize(self.instance, self.tools, self.reporter, self.hooks, self.hook, self.binding)
        except EXPECTED as error:
            raise failed_event(self.instance, self.reporter, self.hook, error) from error
        if changed:
            self.reporter.values_changed(self.instance, self.hook.name)


async def synchronize(
    instance: Instance, tools: Tools, reporter: Reporter, hooks: PackageHooks, hook: Hook, binding: KubernetesBinding
) -> bool:
    """Tell a hook all there is of a binding (if it wants that), then let events flow; True if the values changed."""
    changed = False
    if binding.on_synchronization and not binding.legacy:
        try:
            changed = await run_hook(instance, tools, reporter, hook, (hooks.synchronization(hook, binding),))
        except EXPECTED as error:
            if not binding.allow_failure:
                raise
            log.warning("%s: %s failed, which it is allowed to: %s", instance.id, hook.name, error)
    hooks.monitor(hook, binding).unlock()
    return changed


def failed_event(instance: Instance, reporter: Reporter, hook: Hook, error: Expected) -> TaskFailed:
    """Report that an event hook failed, and what its queue is told."""
    failure = classify(error)
    message = instance.masked(failure.message)
    instance.failing[hook.name] = message
    reporter.failed(instance, Stage.HOOKS, Failure("EventHookFailed", message, permanent=False))
    return TaskFailed(f"{failure.reason}: {message}", permanent=False)
