"""Runs of a package's hooks: this module connects hooks with values, object patches, metrics and the recorded state.

After a run (spec/runtime §7.3), the object patches are applied first. If the run has failed, only the object patches that are
marked for this case are applied: with them, a hook can report its failure. If the run has succeeded, the metrics are published
next. Then the values patches are checked with the schemas and recorded, and only then do they become visible
(:mod:`~wharfinger.runtime.tasks.values_patches`). If any of these steps fails, the run counts as failed; a retry of the hook
gets new snapshots.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.hook_made import HookMark
from wharfinger.formats.json.value import JsonObject, canonical_json
from wharfinger.formats.listing import listed
from wharfinger.formats.redaction.redaction import redact_object
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.hooks.config.bindings import HookPool
from wharfinger.hooks.config.config import MAIN_QUEUE
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.metrics.operations import MetricOperation, read_metric_operations
from wharfinger.hooks.metrics.run_metrics import HookRunSample, RunOutcome
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.log_budget import BURST_CHARS, BURST_LINES, CHARS_PER_S, LINES_PER_S, LogBudget
from wharfinger.hooks.running.object_operations import Create, Operation, despite_failure, read_operations
from wharfinger.hooks.running.object_patches import apply_operations
from wharfinger.hooks.running.run_report import ANSWERS
from wharfinger.hooks.running.runner import HookOutcome, HookRun, LogRecord
from wharfinger.hooks.watching.context_file import Context
from wharfinger.hooks.watching.contexts import helm_binding
from wharfinger.hooks.watching.monitor_core import Item
from wharfinger.kube.resource import kind_of
from wharfinger.packages.settings.values import hook_values
from wharfinger.queue.lane import current_span
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.package.events import HookDone
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import GLOBAL, has_release, identity_variables, is_global
from wharfinger.runtime.resources.resources import NO_POOL
from wharfinger.runtime.status.failures import EXPECTED, HookRunError
from wharfinger.runtime.tasks.values_patches import check_values_patch, patch_settings, patch_values
from wharfinger.runtime.tracing.tracer import HookNames, HookSpan, hook_span

log = logging.getLogger(__name__)

HOOK_AGENT: Final = "hook"
"""The suffix of the user agent in requests about objects that hooks patch."""
MAX_PROBLEMS: Final = 10
"""The limit on the number of failed operations of one run that are reported."""
_BOUND: Final = (
    f"a hook may log {BURST_LINES} lines or {BURST_CHARS // 1024} KiB in a burst, and {LINES_PER_S:g} lines or "
    f"{CHARS_PER_S / 1024:g} KiB a second after that"
)
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


@dataclass(slots=True)
class Cause:
    """The cause of a hook's run: the binding, and the queue in which the run waits. Metrics name both. ``allow_failure`` is
    True if the binding allows the run to fail.
    """

    binding: str
    queue: str = MAIN_QUEUE
    allow_failure: bool = False
    begun: float = field(default_factory=trio.current_time)


Telling = Callable[[], Sequence[Context]]
"""A function that makes a hook's binding contexts.

It is called when the run starts, so that the snapshots are as new as possible (spec hook-protocol §2.2).
"""


async def run_hook(instance: Instance, tools: Tools, host: Host, hook: Hook, telling: Telling, cause: Cause) -> bool:
    """Run one hook once, and apply its output; return True if it changed the values.

    ``telling`` returns the hook's contexts, and is called once. Raises HookRunError if the hook failed, or the error that
    occurred while its output was applied.
    """
    instance.hook_begins()
    cause.begun = trio.current_time()  # the time is set again once the hook has a slot
    outcome: list[HookOutcome] = []
    try:
        changed = await _run(instance, tools, host, hook, telling, cause, outcome)
    except EXPECTED as error:
        failed = RunOutcome.ALLOWED_ERROR if cause.allow_failure else RunOutcome.ERROR
        _measured(instance, tools, hook, cause, failed, outcome)
        host.emit(instance, HookDone(hook.name, instance.masked(str(error))))
        raise
    finally:
        instance.hook_ends()
    _measured(instance, tools, hook, cause, RunOutcome.SUCCESS, outcome)
    host.emit(instance, HookDone(hook.name, ""))
    return changed


async def ask_hook(
    instance: Instance,
    tools: Tools,
    host: Host,
    hook: Hook,
    contexts: Sequence[Context],
    *,
    settings: JsonObject,
    values: JsonObject,
) -> str:
    """Run a hook only for its answer, which is its exit status: the hook changes nothing. Return "" if the hook succeeds,
    otherwise the description of its failure. Raises HookError.
    """
    lines = HookLog(instance, hook)
    run = _run_of(instance, tools, host, hook, contexts, settings, values, lines)
    async with tools.slots.use(Kind.HOOK, instance.id.name):
        outcome = await _logged(tools, run, lines, _span(instance, tools, hook))
    return "" if outcome.succeeded else instance.masked(outcome.exit_description)


async def review_by_hook(
    instance: Instance,
    tools: Tools,
    host: Host,
    hook: Hook,
    contexts: Sequence[Context],
    cause: Cause,
    *,
    slot: AbstractAsyncContextManager[None],
    dry_run: bool,
) -> Mapping[str, bytes]:
    """Run a hook that answers an API server, and return its response files. The hook may publish metrics, and change objects
    unless ``dry_run`` is true; it must not change values.

    The run is not queued, and needs no slot for hooks, because the work that has these slots may be waiting for the hook's
    answer. The run has ``slot`` until the hook has ended. It does not keep ``slot`` while its object patches are applied,
    because these changes may be reviewed by other hooks, which need slots, too. The caller limits the time. Raises HookRunError
    if the hook failed, or the error that occurred while its output was applied.
    """
    outcome: list[HookOutcome] = []
    try:
        answers = await _reviewed(instance, tools, host, hook, contexts, cause, slot, outcome, dry_run=dry_run)
    except EXPECTED:
        _measured(instance, tools, hook, cause, RunOutcome.ERROR, outcome)
        raise
    _measured(instance, tools, hook, cause, RunOutcome.SUCCESS, outcome)
    return answers


async def _reviewed(
    instance: Instance,
    tools: Tools,
    host: Host,
    hook: Hook,
    contexts: Sequence[Context],
    cause: Cause,
    slot: AbstractAsyncContextManager[None],
    ended: list[HookOutcome],
    *,
    dry_run: bool,
) -> Mapping[str, bytes]:
    async with slot:
        cause.begun = trio.current_time()
        lines, configured = HookLog(instance, hook, cause), instance.configuration
        run = _run_of(instance, tools, host, hook, contexts, configured.configured.settings, configured.values, lines)
        outcome = await _logged(tools, replace(run, answers=ANSWERS), lines, _span(instance, tools, hook, cause))
    ended.append(outcome)
    if not outcome.succeeded:
        raise HookRunError(hook.name, outcome.exit_description)
    if outcome.values_patch or outcome.config_values_patch:
        raise HookRunError(hook.name, "it changed values, but a hook that answers an API server must not change values")
    metrics = read_metric_operations(outcome.metrics, hook=hook.name)
    if not dry_run and (problems := await _apply_object_patches(instance, tools, hook, outcome)):
        raise HookRunError(hook.name, listed(problems, MAX_PROBLEMS, "; "))
    _publish(instance, tools, hook, metrics)
    return outcome.answers


def snapshots_of(instance: Instance, hook: Hook) -> dict[str, tuple[Item, ...]]:
    """Return the current snapshots of all bindings of a hook; empty lists while its package's hooks are stopped."""
    if instance.hooks.started is not None:
        return instance.hooks.started.all_snapshots(hook)
    return {binding.name: () for binding in hook.config.kubernetes}


def with_snapshots(instance: Instance, hook: Hook, binding: str) -> Telling:
    """Return the function that makes the context for a binding such as ``beforeHelm`` or ``afterAll``. The context has all
    snapshots of the hook.
    """
    return lambda: (helm_binding(binding, snapshots_of(instance, hook)),)


async def wait_hooks_quiet(instance: Instance) -> None:
    """Wait until no hook of the package runs."""
    while instance.running_hooks:
        await instance.hooks_quiet.wait()


class HookLog:
    """The log of a hook's output in one run, written while the hook runs. Secrets are masked. Lines beyond the hook's remaining
    log budget are omitted.
    """

    def __init__(self, instance: Instance, hook: Hook, cause: Cause | None = None) -> None:
        self._budgets = instance.log_budgets
        self._secrets = instance.secrets
        self._redact = TextRedactor(self._secrets).redact
        self._hook = hook.name
        self._about: JsonObject = {"hook": hook.name}
        if cause is not None:
            self._about |= {"binding": cause.binding, "queue": cause.queue}

    def record(self, record: LogRecord) -> None:
        """Log one record: a line of text or an object. If the log budget is used up, count the record as left out instead."""
        size = len(record.message) + (len(canonical_json(dict(record.fields))) if record.fields else 0)
        budget, admitted = self._budget().admit(size, trio.current_time())
        self._budgets[self._hook] = budget
        if not admitted:
            return
        self.report()
        said = redact_object(dict(record.fields), secrets=self._secrets) if record.fields else {}
        fields = {**said, **self._about, "output": record.stream}
        level = _LEVELS[record.level]
        log.log(level, "%s: %s", self._hook, self._redact(record.message), extra={"fields": fields})

    def report(self) -> None:
        """Log how many lines were left out, if any. Called before the next line is logged, and at the end of the run."""
        self._budgets[self._hook], left_out = self._budget().report()
        if left_out:
            log.warning("%s: %d lines left out; %s", self._hook, left_out, _BOUND, extra={"fields": self._about})

    def _budget(self) -> LogBudget:
        return self._budgets.get(self._hook, LogBudget())


async def _run(
    instance: Instance,
    tools: Tools,
    host: Host,
    hook: Hook,
    telling: Telling,
    cause: Cause,
    ended: list[HookOutcome],
) -> bool:
    """Run the hook, and apply its output. The outcome is added to ``ended`` as soon as the hook has ended."""
    async with tools.slots.use(Kind.HOOK, instance.id.name):
        cause.begun = trio.current_time()
        lines, settings = HookLog(instance, hook, cause), instance.configuration.configured.settings
        run = _run_of(instance, tools, host, hook, telling(), settings, instance.configuration.values, lines)
        outcome = await _logged(tools, run, lines, _span(instance, tools, hook, cause))
    ended.append(outcome)
    # All files are read before any change is made, because the run fails if a file is invalid.
    metrics = read_metric_operations(outcome.metrics, hook=hook.name) if outcome.succeeded else ()
    problems = await _apply_object_patches(instance, tools, hook, outcome)
    if not outcome.succeeded:
        raise HookRunError(hook.name, outcome.exit_description)
    if problems:
        raise HookRunError(hook.name, listed(problems, MAX_PROBLEMS, "; "))
    _publish(instance, tools, hook, metrics)
    if outcome.config_values_patch:
        if outcome.values_patch:  # checked first, so that the settings are not changed if this patch is invalid
            await check_values_patch(instance, tools, hook.name, outcome.values_patch)
        await patch_settings(instance, tools, hook.name, outcome.config_values_patch)
    return bool(outcome.values_patch) and await patch_values(instance, tools, host, hook.name, outcome.values_patch)


async def _logged(tools: Tools, run: HookRun, lines: HookLog, span: HookSpan) -> HookOutcome:
    """Run the hook in its tracing span. At the end, also after a failure, log how many lines were left out."""
    try:
        with span as opened:
            outcome = await tools.hook_runner.run(replace(run, traceparent=opened.traceparent))
            opened.ended(succeeded=outcome.succeeded)
            return outcome
    finally:
        lines.report()


def _run_of(
    instance: Instance,
    tools: Tools,
    host: Host,
    hook: Hook,
    contexts: Sequence[Context],
    settings: JsonObject,
    values: JsonObject,
    lines: HookLog,
) -> HookRun:
    definition = instance.loaded()
    global_values = host.global_values()
    pool, worker_pool = pools_of(hook, instance.desired.directives.pool)
    return HookRun(
        name=hook.name,
        executable=hook.executable,
        argv=hook.argv,
        cwd=hook.cwd,
        environment={**hook.environment, **identity_variables(instance.id)},
        contexts=tuple(contexts),
        # A global hook gets the values that every package gets under `global`.
        values={GLOBAL: global_values} if is_global(instance.id) else hook_values(definition, global_values, values),
        config_values=hook_values(definition, host.global_settings(), settings),
        credentials=tools.hook_credentials.gives(instance.isolation),
        account=instance.account,
        pool=pool,
        owner=instance.id.name,
        worker_pool=worker_pool,
        namespace=instance.id.namespace,
        on_record=lines.record,
    )


def _span(instance: Instance, tools: Tools, hook: Hook, cause: Cause | None = None) -> HookSpan:
    """Open the tracing span of a run of a hook, within the span of its task."""
    binding, queue = (cause.binding, cause.queue) if cause is not None else ("", "")
    return hook_span(tools.tracer, HookNames(instance.id.name, hook.name, binding, queue), current_span())


def pools_of(hook: Hook, of_package: str) -> tuple[HookPool, str]:
    """Return the kind of process in which a hook runs, and the name of its WorkerPool or ""; ``of_package`` is the package's
    ``spec.pool``.

    If ``of_package`` is NO_POOL, each run of the package's hooks gets a new process. If ``of_package`` names a WorkerPool, this
    pool is used only for hooks whose own configuration names no WorkerPool and has the default kind of process.
    """
    pool, worker_pool = hook.config.pool, hook.config.worker_pool
    if of_package == NO_POOL:
        return HookPool.NONE, worker_pool
    return pool, worker_pool or (of_package if pool is HookPool.WARM else "")


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
    mark = await _mark(instance, tools, operations)
    client = instance.acting(tools, comment=HOOK_AGENT)
    failures = await apply_operations(client, filters, operations, namespace=instance.isolation, mark=mark)
    return tuple(str(failure) for failure in failures)


async def _mark(instance: Instance, tools: Tools, operations: Sequence[Operation]) -> HookMark | None:
    """Return the mark for objects that the hook creates. The kinds of the objects are recorded first, so that an uninstall
    finds them.

    Raises ClusterError.
    """
    kinds = {"/".join(kind_of(operation.object)) for operation in operations if isinstance(operation, Create)}
    if not kinds or not has_release(instance.id):
        return None
    record = await instance.recorded(tools)
    if not kinds <= record.state.made:
        await record.update(lambda state: state.may_have_made(kinds))
    return HookMark(Owner(instance.id.release, instance.id.namespace))


def _publish(instance: Instance, tools: Tools, hook: Hook, operations: Sequence[MetricOperation]) -> None:
    if not operations:
        return
    masked = TextRedactor(instance.secrets).redact  # made once, because there may be tens of thousands of labels
    for warning in tools.metrics.apply(instance.id.name, hook.name, operations, masked=masked):
        log.warning("%s: metrics: %s", hook.name, masked(warning))


def _measured(
    instance: Instance, tools: Tools, hook: Hook, cause: Cause, how: RunOutcome, ended: Sequence[HookOutcome]
) -> None:
    spent = ended[0] if ended else None
    tools.metrics.ran(
        HookRunSample(
            package=instance.id.name,
            hook=hook.name,
            binding=cause.binding,
            queue=cause.queue,
            outcome=how,
            wall_s=trio.current_time() - cause.begun,
            user_s=spent.user_s if spent else 0.0,
            system_s=spent.system_s if spent else 0.0,
            max_rss_bytes=spent.max_rss_bytes if spent else 0,
        )
    )
