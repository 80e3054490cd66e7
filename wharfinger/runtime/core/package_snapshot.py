"""The snapshot of one package: the wanted state, the installed state, and the work in progress, without secrets.

Most of it is in the package's `Instance`. Facts about all packages (the journal, the limits, the packages that apply their
CRDs first) are read once for any number of packages, as `Surroundings`, and added by `surrounded`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import trio

from wharfinger.cluster.objects.desired import Identity
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted
from wharfinger.formats.redaction.redaction import redact_object
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.watching.monitor import Monitor
from wharfinger.queue.dump import QueueDump
from wharfinger.queue.slots import Slots
from wharfinger.runtime.inspector import (
    ACCEPTED,
    REMOVED,
    ConditionSnapshot,
    HookSnapshot,
    MonitorSnapshot,
    OperationSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.package.state import HookHistory
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.progress import Progress
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.tasks.start_tasks import ORDERS, order_of
from wharfinger.runtime.why.causes import moment_after

MOST_FAILING: Final = 10
"""The limit on the number of failing objects that are shown for one release."""
AWAIT_CRDS: Final = "AwaitCRDs"
"""The name of the task that waits for the CRDs of other packages."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts about packages that no `Instance` contains: operations by package, limits, and the packages that apply their
    CRDs first.

    ``failing`` has one text for each failing object, by release.
    """

    operations: Mapping[str, tuple[OperationSnapshot, ...]]
    slots: Slots
    trying_crds: tuple[str, ...]
    failing: Mapping[Owner, tuple[str, ...]] = field(default_factory=dict)


def surroundings(tools: Tools, today: datetime) -> Surroundings:
    """Collect the facts about all packages that no `Instance` contains, for snapshots of packages. ``today`` is the current
    time of the wall clock.
    """
    operations: defaultdict[str, tuple[OperationSnapshot, ...]] = defaultdict(tuple)
    for entry in tools.journal.entries():
        operations[entry.package] += (
            OperationSnapshot(
                entry.operation.value, entry.completed, entry.in_flight, entry.interrupted, entry.earlier
            ),
        )
    now = trio.current_time()
    failing = {
        owner: tuple(failure_line(failure, now, today) for failure in failures[:MOST_FAILING])
        for owner, failures in tools.releases.failures().items()
    }
    return Surroundings(operations, tools.slots, tools.crd_phase.trying(), failing)


def failure_line(failure: Failure[Identity], now: float, today: datetime) -> str:
    """Return a line about a failing object.

    For example: ``ConfigMap a/b: timed out; attempt 4 failed, next at 12:07:20 UTC (in 13 s); before: …``. ``now`` is trio's
    clock, and ``today`` the wall clock at that moment.
    """
    pause = failure.next_at - now
    next_try = f"next at {moment_after(today, pause)}" if pause > 0 else f"attempt {failure.attempts + 1} is under way"
    before = "; ".join(f"{one.message} ({counted(one.times, 'time')})" for one in reversed(failure.history[:-1]))
    text = f"{failure.key}: {failure.error}; attempt {failure.attempts} failed, {next_try}"
    return f"{text}; before: {before}" if before else text


def surrounded(package: PackageSnapshot, around: Surroundings, release: Owner | None = None) -> PackageSnapshot:
    """Return a package's snapshot with the facts of ``around`` added. ``release`` is the release of the package, None if the
    package has no release.
    """
    return replace(
        package,
        queue=waiting_queue(package.queue, around, established=package.crds is not None),
        failing=around.failing.get(release, ()) if release is not None else (),
        waits_for=tuple(kind.value for kind in around.slots.waiting(package.name)),
        operations=around.operations.get(package.name, ()),
    )


def waiting_queue(queue: QueueSnapshot, around: Surroundings, *, established: bool) -> QueueSnapshot:
    """Return the snapshot of a queue, with the things that its running tasks wait for.

    ``established`` is true if the package's own CRDs are established. It is known which package waits for a slot, but not which
    of its tasks. So if several tasks run, the snapshot of each says that another task may be the one that waits.
    """
    running = sum(task.running for task in queue.tasks)
    if not running:
        return queue
    slots = ", ".join(around.slots.waiting(queue.name))
    one_of = f" (for this task, or for another of the {running} running tasks)" if running > 1 else ""
    definitions = sorted({*around.trying_crds, *(() if established else (queue.name,))})

    def waits_for(task: TaskSnapshot) -> str:
        if not task.running:
            return ""
        if task.name == AWAIT_CRDS and definitions:
            return f"the custom resource definitions of {', '.join(definitions)}"
        return f"a slot{one_of}: {slots}" if slots else ""

    return replace(queue, tasks=tuple(replace(task, waits_for=waits_for(task)) for task in queue.tasks))


def package_snapshot(instance: Instance, queue: QueueDump) -> PackageSnapshot:
    """Return the snapshot of one package and its queue."""
    state, message, tip = summarize(instance.status)
    return PackageSnapshot(
        name=instance.id.name,
        kind=instance.id.kind,
        namespace=instance.id.namespace,
        package=instance.desired.package,
        version=instance.desired.version,
        digest=str(instance.files.manifest.descriptor.digest) if instance.files.manifest else "",
        release_revision=instance.status.revision,
        state=state,
        message=message,
        tip=tip,
        settings=_shown(instance, instance.desired.settings.settings),
        conditions=condition_snapshots(instance.status),
        queue=queue_snapshot(queue),
        installed_version=instance.status.version,
        installed_digest=instance.status.digest,
        values=_shown(instance, instance.configuration.values),
        hooks=tuple(_hook(hook, instance) for hook in instance.files.hooks),
        suspended=instance.status.suspended,
        maintenance=instance.status.maintenance.reason if instance.status.maintenance is not None else "",
        progress=_progress(instance.status.progress),
        warnings=instance.status.warnings,
        update=instance.status.update.line if instance.status.update is not None else "",
        rollback=instance.status.rollback.line if instance.status.rollback is not None else "",
        unmatched=instance.applied.unmatched,
        urls=tuple(url for url, _ in instance.status.urls),
        drift=instance.applied.drift,
        crds=instance.crds.established,
        monitors=tuple(_monitor(one) for one in instance.hooks.started.monitors())
        if instance.hooks.started is not None
        else (),
        secrets=instance.secrets,
    )


def queue_snapshot(dump: QueueDump) -> QueueSnapshot:
    """Return the snapshot of one queue."""
    return QueueSnapshot(
        dump.name,
        tuple(
            TaskSnapshot(
                index=task.index,
                name=task.name,
                lane=task.lane,
                enqueued_s_ago=task.enqueued_s_ago,
                attempt=task.attempt,
                running=task.running,
                retry_in_s=task.retry_in_s,
                error=task.error,
                cause=task.cause,
                parked=task.parked,
            )
            for task in dump.tasks
        ),
    )


def _shown(instance: Instance, values: JsonObject) -> JsonObject:
    """Return settings or values in a form that may be shown: a value that is secret because of its path, its text or the name
    of its key is redacted.
    """
    return redact_object(values, paths=instance.hidden_paths, secrets=instance.secrets)


def condition_snapshots(status: PackageStatus) -> tuple[ConditionSnapshot, ...]:
    """Return the condition of each stage, and up to two conditions that are not about a stage. One reports that the resource
    cannot be acted on; the other reports that the package is being removed, or that its removal is held back.
    """
    stages = {stage.value: condition for stage, condition in status.stages.items()}
    over = {ACCEPTED: status.blocked, REMOVED: status.removal or status.held}
    told = {**stages, **{kind: condition for kind, condition in over.items() if condition is not None}}
    return tuple(
        ConditionSnapshot(kind, condition.truth.value, condition.reason, condition.message, condition.since)
        for kind, condition in told.items()
    )


def _progress(progress: Progress | None) -> ProgressSnapshot | None:
    if progress is None:
        return None
    return ProgressSnapshot(progress.completed, progress.remaining, progress.waiting_for)


def _hook(hook: Hook, instance: Instance) -> HookSnapshot:
    history = instance.hooks.history.get(hook.name, HookHistory())
    inboxes = instance.hooks.started.inboxes if instance.hooks.started is not None else {}
    own = [box for (name, _), box in inboxes.items() if name == hook.name]
    orders = [(name, order_of(hook.config, name)) for name in ORDERS]
    bindings = [f"{name} {order}" for name, order in orders if order is not None]
    bindings += [f"kubernetes {binding.name}" for binding in hook.config.kubernetes]
    bindings += [f"schedule {binding.name} {binding.crontab}" for binding in hook.config.schedules]
    return HookSnapshot(
        hook.name,
        tuple(bindings),
        history.runs,
        history.last_run,
        history.last_error,
        waiting=sum(len(box.waiting) for box in own),
        reduced=sum(box.reduced for box in own),
    )


def _monitor(monitor: Monitor) -> MonitorSnapshot:
    found = monitor.statistics()
    return MonitorSnapshot(
        hook=monitor.hook,
        binding=monitor.binding.name,
        listed=found.listed,
        locked=found.locked,
        objects=found.objects,
        watches=found.watches,
        waiting=found.inbox + found.gathered,
        events=found.added + found.modified + found.deleted,
        dropped=found.dropped,
        last_error=found.last_error,
    )
