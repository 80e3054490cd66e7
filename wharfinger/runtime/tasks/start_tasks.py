"""Configure → Startup, and Disable: settings become values, hooks are started, and stopped.

Startup depends on the layout. ``package.yaml`` packages start watching for their bindings first and then run onStartup, each
hook once per version: a hook that is recorded as done is not run again, not even after a crash; and a binding whose hook
already knows all objects (:mod:`~wharfinger.runtime.tasks.synchronizations`) is not synchronized again. addon-operator's
modules run onStartup first, and everything at every start, as their contract says. In both, every kubernetes binding is
synchronized before its events are released. A second Startup does only the missing steps, so a failure in the middle repeats
no successful step.
"""

import logging
from operator import attrgetter

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import HookConfig
from wharfinger.hooks.config.config import MAIN_QUEUE as HOOK_MAIN_QUEUE
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook, HookKind
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.hooks.watching import contexts
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.settings.values import SettingsError, check_settings, check_values_rules, merged_values
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.instance import Instance, Reporter, Tools
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.configuration import comparable_settings, newest_settings
from wharfinger.runtime.tasks.event_tasks import SynchronizeTask, lane_of, named, synchronize
from wharfinger.runtime.tasks.health_expressions import check_health_rules
from wharfinger.runtime.tasks.hook_checks import check_by_hook
from wharfinger.runtime.tasks.hook_runs import Cause, run_hook, wait_hooks_quiet, with_snapshots
from wharfinger.runtime.tasks.synchronizations import knows_all, remember
from wharfinger.runtime.tasks.values import values_of

log = logging.getLogger(__name__)


async def configure(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Configure the instance with its settings, the only place that does so; they are read late, so the latest wish counts.

    They are converted to the newest version of their schema, compared with those configured before (also by an earlier
    process), and merged into values, which are checked as well. Raises ConversionError, SettingsError, RulesError, UpkeepError.
    """
    definition, version = instance.loaded(), instance.wanted_settings.version
    await check_health_rules(instance.wanted.upkeep.health, tools.rules)
    record = await instance.recorded(tools)
    newest = await newest_settings(instance, tools)
    before, filters = record.state, tools.filters.of(instance.id.name)
    old = await comparable_settings(definition, filters, before.configured, before.configured_version)
    report = await check_settings(definition, newest.settings, old, tools.rules)
    if report.problems:
        raise SettingsError(report.problems)
    async with instance.values_lock:
        values = await _checked_values(instance, tools, newest.settings)
        await check_by_hook(instance, tools, reporter, report.settings, values)
        instance.configured, instance.configured_by = newest, definition
        instance.settings, instance.values = report.settings, values
    if definition.settings_schema is not None and definition.settings_schema.compares:
        await record.update(lambda state: state.configured_as(report.settings, newest.version))
    else:
        await record.update(lambda state: state.configured_as(None))
    current = newest.version
    older = (f"spec.settings are of version {version}, and converted; the newest is {current}",)
    said = tuple(instance.masked(f"spec.settings.{warning.path}: {warning.message}") for warning in report.warnings)
    reporter.warned(instance, "settings", (older if 0 < version < current else ()) + said)


async def _checked_values(instance: Instance, tools: Tools, settings: JsonObject) -> JsonObject:
    """Return the values for the settings. Values patches of hooks are dropped if they alone do not fit the schemas any more."""
    definition = instance.loaded()
    before = instance.values if instance.is_configured else None
    values = values_of(instance, settings)
    report = await check_values_rules(definition, values, before, tools.rules)
    if report.problems and instance.patches:
        # Either the user's settings are wrong: the user has to correct them, and nothing is lost. Or the values patches
        # by hooks of another version do not fit any more: then the hooks have to start again.
        fresh = merged_values(definition, settings)
        alone = await check_values_rules(definition, fresh, before, tools.rules)
        if alone.problems:
            raise SettingsError(alone.problems, subject="values")
        log.warning(
            "%s: the values patches of its hooks do not fit this version any more, and are dropped", instance.id
        )
        record = await instance.recorded(tools)
        await record.update(lambda state: state.started_anew())
        if instance.hook_scope is not None:
            instance.hook_scope.cancel("the hooks' values were dropped")
        return fresh
    if report.problems:
        raise SettingsError(report.problems, subject="values")
    return values


async def startup(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Start the hooks, once for each time that they are loaded; hooks that were stopped, wholly or partly, are started afresh."""
    if not instance.hooks:
        return
    early = instance.loaded().layout is Layout.MODULE_FOLDER
    if instance.hook_scope is None or instance.hook_scope.cancelled:
        await rest_hooks(instance, tools)
        instance.hook_scope = WorkScope(f"hooks of {instance.id.name}")
    if instance.started is None:
        reporter.progressed(instance, Stage.HOOKS, "StartingHooks", f"starting {len(instance.hooks)} hooks")
    if early:
        await _run_startup_hooks(instance, tools, reporter)
    if instance.started is None:
        instance.started = await tools.hook_services.start(
            instance.id.name, instance.hooks, namespace=instance.isolation
        )
    await _synchronize_all(instance, tools, reporter, instance.started, instance.hook_scope)
    if not early:
        await _run_startup_hooks(instance, tools, reporter)
    if not tools.synchronization.always(instance.loaded().layout):
        await remember(instance, tools)
    tools.hook_services.ring(instance.started)


async def rest_hooks(instance: Instance, tools: Tools) -> None:
    """Stop the hooks: interrupt those that run, and end their watches.

    If this is cut short, the hooks count as stopped, and are really stopped before they are started the next time.
    """
    if instance.hook_scope is not None:
        instance.hook_scope.cancel("the package's hooks are stopped")
    instance.hook_scope = instance.started = None
    instance.startup_done = frozenset()
    instance.failing.clear()
    await wait_hooks_quiet(instance)
    tools.metrics.forget(instance.id.name)
    await tools.hook_services.stop(instance.id.name)


async def run_bound(instance: Instance, tools: Tools, reporter: Reporter, binding: str, *, number: int = 1) -> set[str]:
    """Run the hooks of a Helm binding (``beforeHelm`` …) in their order, with all their snapshots.

    Return the names of those that changed the values. Each hook is a step of the operation, and skipped if the journal has
    it as complete; ``number`` is the round.
    """
    steps, changed = instance.journalled(), set[str]()
    for hook in bound_hooks(instance.hooks, binding):
        step = f"{binding}/{number}/{hook.name}"
        if steps.done(step) is not None:
            continue
        with steps.taking(step):
            telling = with_snapshots(instance, hook, binding)
            if await run_hook(instance, tools, reporter, hook, telling, Cause(binding)):
                changed.add(hook.name)
    return changed


ORDERS = {
    "onStartup": attrgetter("on_startup"),
    "beforeHelm": attrgetter("before_helm"),
    "afterHelm": attrgetter("after_helm"),
    "beforeDeleteHelm": attrgetter("before_delete_helm"),
    "afterDeleteHelm": attrgetter("after_delete_helm"),
    "beforeAll": attrgetter("before_all"),
    "afterAll": attrgetter("after_all"),
}


def order_of(config: HookConfig, binding: str) -> int | None:
    """Return the hook's order among those of a binding; None if it is not bound there."""
    order: int | None = ORDERS[binding](config)
    return order


def bound_hooks(hooks: tuple[Hook, ...], binding: str) -> tuple[Hook, ...]:
    """Return the hooks of a binding by order; equal ones as discovered: by path, those of one executable by their place in it."""
    found = [(order, hook) for hook in hooks if (order := order_of(hook.config, binding)) is not None]
    return tuple(hook for _, hook in sorted(found, key=lambda pair: pair[0]))


async def _run_startup_hooks(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    record = await instance.recorded(tools)
    once = not tools.on_startup.always(instance.loaded().layout)
    for hook in bound_hooks(instance.hooks, "onStartup"):
        if hook.name in instance.startup_done or (once and hook.name in record.state.started):
            continue
        reporter.progressed(instance, Stage.HOOKS, "StartingHooks", f"running {hook.name} (onStartup)")
        await run_hook(instance, tools, reporter, hook, lambda: (contexts.on_startup(),), Cause("onStartup"))
        if once:
            name = hook.name
            await record.update(lambda state: state.startup_done(name))  # noqa: B023 - called before the next turn
        instance.startup_done |= {hook.name}


async def _synchronize_all(
    instance: Instance, tools: Tools, reporter: Reporter, hooks: PackageHooks, scope: WorkScope
) -> None:
    again = tools.synchronization.always(instance.loaded().layout)
    runs = [
        (hook, bindings, (hook.name, bindings[0].name, number))
        for hook in instance.hooks
        for number, bindings in enumerate(contexts.synchronized_together(hook.config))
    ]
    # A readiness hook is asked later, and gets no Synchronization.
    # Computed before the first run: once a hook is notified for one binding, the record has none of its entries.
    known = {
        key
        for hook, bindings, key in runs
        if hook.kind is HookKind.READINESS
        or (not again and all(knows_all(instance, hook, binding) for binding in bindings))
    }
    for hook, bindings, key in runs:
        if key in hooks.synchronized:
            continue
        head = bindings[0]
        if key in known:
            for binding in bindings:
                hooks.monitor(hook, binding).unlock()
        elif head.wait_for_synchronization or head.queue == HOOK_MAIN_QUEUE:
            doing = f"synchronising {hook.name} with {named(bindings)}"
            reporter.progressed(instance, Stage.HOOKS, "StartingHooks", doing)
            await synchronize(instance, tools, reporter, hooks, hook, bindings)
        else:
            task = SynchronizeTask(hook, bindings, hooks, instance, tools, reporter, scope)
            if not reporter.run_later(instance, task, lane_of(head.queue)):
                raise HookError(hook.name, "the queue has no room for its synchronisation", transient=True)
        hooks.synchronized.add(key)
