"""Running a package's hooks: one place where a hook meets values, object patches and the record.

The order after a run (spec/runtime §7.3): object patches are applied (of a run that failed, those that say they are to be:
hooks report failures with them); the values patch of a run that succeeded is checked against the schema, recorded, and only
then true. A hook that failed in any of this has failed, and is run again with fresh snapshots.
"""

import logging
from collections.abc import Sequence
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object
from wharfinger.formats.redaction_text import TextRedactor
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.object_operations import despite_failure, read_operations
from wharfinger.hooks.object_patches import apply_operations
from wharfinger.hooks.runner import HookOutcome, HookRun
from wharfinger.hooks.values_patch import apply_values_patch, compacted
from wharfinger.packages.values import SettingsError, check_values_rules, hook_values
from wharfinger.queue.slots import Kind
from wharfinger.runtime.failures import EXPECTED, HookRunError
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.instance import Instance, Reporter, Tools

log = logging.getLogger(__name__)

MAX_LOGGED: Final = 1_000
"""Lines of one run."""


async def run_hook(
    instance: Instance, tools: Tools, reporter: Reporter, hook: Hook, contexts: Sequence[JsonObject]
) -> bool:
    """Run one hook once and take over what it left; True if it changed the values.

    Raises HookRunError where it failed, and what applying can raise.
    """
    instance.running_hooks += 1
    try:
        changed = await _run(instance, tools, reporter, hook, contexts)
    except EXPECTED as error:
        reporter.hook_ran(instance, hook.name, instance.masked(str(error)))
        raise
    finally:
        instance.running_hooks -= 1
        if not instance.running_hooks:
            instance.hooks_quiet.tell()
    reporter.hook_ran(instance, hook.name, "")
    return changed


async def wait_hooks_quiet(instance: Instance) -> None:
    """Return once no hook of the package runs."""
    while instance.running_hooks:
        await instance.hooks_quiet.wait()


class HookLog:
    """What a hook prints, logged while it runs: masked, and not without end."""

    def __init__(self, instance: Instance, hook: Hook) -> None:
        self._redact = TextRedactor(instance.secrets).redact
        self._hook = hook.name
        self._lines = 0

    def line(self, text: str) -> None:
        """One more line."""
        self._lines += 1
        if self._lines <= MAX_LOGGED:
            log.info("%s: %s", self._hook, self._redact(text))
        elif self._lines == MAX_LOGGED + 1:
            log.warning("%s: more than %d lines; the rest of this run is not logged", self._hook, MAX_LOGGED)


async def _run(
    instance: Instance, tools: Tools, reporter: Reporter, hook: Hook, contexts: Sequence[JsonObject]
) -> bool:
    definition = instance.loaded()
    run = HookRun(
        name=hook.name,
        executable=hook.executable,
        argv=hook.argv,
        cwd=hook.cwd,
        environment={**hook.environment, **_identity_variables(instance)},
        contexts=tuple(contexts),
        values=hook_values(definition, reporter.global_values(), instance.values),
        config_values=hook_values(definition, {}, instance.configured.settings),
        on_line=HookLog(instance, hook).line,
    )
    async with tools.slots.use(Kind.HOOK, instance.id.name):
        outcome = await tools.hook_runner.run(run)
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
    filters = tools.filters.of(instance.id.name)
    failures = await apply_operations(tools.cluster, filters, operations, namespace=instance.isolation)
    return tuple(str(failure) for failure in failures)


async def _patch_values(instance: Instance, tools: Tools, hook: Hook, patch: Sequence[JsonValue]) -> bool:
    """Record a values patch and make it true. Raises HookRunError where it cannot be, ClusterError where it is not recorded."""
    definition, record = instance.loaded(), await instance.recorded(tools.cluster)
    root = definition.camel
    async with instance.values_lock:  # hooks of several queues may end at once
        try:
            document = apply_values_patch({root: instance.values}, patch, root=root)
            values = as_object(document[root], root)
            report = await check_values_rules(definition, values, instance.values, tools.rules)
            if report.problems:
                raise SettingsError(report.problems, subject="values")
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
