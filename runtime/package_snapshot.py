"""One package as a snapshot: what is wanted, what is installed, what it is doing, with nothing in it that may not be shown."""

from wharfinger.formats.json_value import JsonObject
from wharfinger.formats.redaction import redact_object
from wharfinger.hooks.discovery import Hook
from wharfinger.queue.dump import QueueDump
from wharfinger.runtime import status as statuses
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    HookSnapshot,
    PackageSnapshot,
    QueueSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.instance import HookHistory, Instance
from wharfinger.runtime.start_tasks import ORDERS, order_of


def package_snapshot(instance: Instance, queue: QueueDump) -> PackageSnapshot:
    """The snapshot of one package and its queue."""
    state, message, tip = statuses.summary(instance.status)
    return PackageSnapshot(
        name=instance.id.name,
        kind=instance.id.kind,
        namespace=instance.id.namespace,
        package=instance.package,
        version=instance.version,
        digest=str(instance.manifest.descriptor.digest) if instance.manifest else "",
        release_revision=instance.status.revision,
        state=state,
        message=message,
        tip=tip,
        settings=_shown(instance, instance.wanted_settings.settings),
        conditions=tuple(
            ConditionSnapshot(stage.value, condition.truth.value, condition.reason, condition.message, condition.since)
            for stage, condition in instance.status.stages.items()
        ),
        queue=queue_snapshot(queue),
        installed_version=instance.status.version,
        installed_digest=instance.status.digest,
        values=_shown(instance, instance.values),
        hooks=tuple(_hook(hook, instance.history.get(hook.name, HookHistory())) for hook in instance.hooks),
        secrets=instance.secrets,
    )


def queue_snapshot(dump: QueueDump) -> QueueSnapshot:
    """The snapshot of one queue."""
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
            )
            for task in dump.tasks
        ),
    )


def _shown(instance: Instance, values: JsonObject) -> JsonObject:
    """Settings or values fit to be shown: what is secret by its path, by its text, or by the name of its key is not."""
    return redact_object(values, paths=instance.hidden_paths, secrets=instance.secrets)


def _hook(hook: Hook, history: HookHistory) -> HookSnapshot:
    orders = [(name, order_of(hook.config, name)) for name in ORDERS]
    bindings = [f"{name} {order}" for name, order in orders if order is not None]
    bindings += [f"kubernetes {binding.name}" for binding in hook.config.kubernetes]
    bindings += [f"schedule {binding.name} {binding.crontab}" for binding in hook.config.schedules]
    return HookSnapshot(hook.name, tuple(bindings), history.runs, history.last_run, history.last_error)
