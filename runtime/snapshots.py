"""The runtime's Inspector: what is, read in one step, as frozen snapshots (see :mod:`wharfinger.runtime.inspector`)."""

import os
from dataclasses import dataclass
from datetime import datetime

import wharfinger
from wharfinger.queue.dump import QueueDump
from wharfinger.runtime import status as statuses
from wharfinger.runtime.inspector import (
    ConditionSnapshot,
    DaemonSnapshot,
    PackageSnapshot,
    QueueSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.pipeline import Instance
from wharfinger.runtime.runtime import Runtime


@dataclass(slots=True)
class RuntimeInspector:
    """Answers from a running daemon; before the runtime is up there are no packages and it is not ready."""

    cluster: str
    started: datetime
    runtime: Runtime | None = None
    draining: bool = False

    async def daemon(self) -> DaemonSnapshot:
        """The daemon."""
        return DaemonSnapshot(
            version=wharfinger.__version__,
            pid=os.getpid(),
            started=self.started,
            ready=self.runtime is not None and not self.draining,
            cluster=self.cluster,
            packages=len(self.runtime.instances) if self.runtime else 0,
            draining=self.draining,
        )

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """All packages, sorted by name."""
        if self.runtime is None:
            return ()
        return tuple(_package(self.runtime, self.runtime.instances[name]) for name in sorted(self.runtime.instances))

    async def package(self, name: str) -> PackageSnapshot | None:
        """One package, or None."""
        instance = self.runtime.instances.get(name) if self.runtime else None
        return _package(self.runtime, instance) if self.runtime and instance else None

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """All queues, sorted by name; a package that never had a task has an empty one."""
        if self.runtime is None:
            return ()
        names = {*self.runtime.queues.names(), *self.runtime.instances}
        return tuple(_queue(self.runtime.queues.dump_one(name)) for name in sorted(names))


def _package(runtime: Runtime, instance: Instance) -> PackageSnapshot:
    state, message, tip = statuses.summary(instance.status)
    return PackageSnapshot(
        name=instance.id.name,
        kind="Application",
        namespace=instance.id.namespace,
        package=instance.package,
        version=instance.version,
        digest=str(instance.manifest.descriptor.digest) if instance.manifest else "",
        release_revision=instance.status.revision,
        state=state,
        message=message,
        tip=tip,
        settings=instance.wanted_settings,
        conditions=tuple(
            ConditionSnapshot(stage.value, condition.truth.value, condition.reason, condition.message, condition.since)
            for stage, condition in instance.status.stages.items()
        ),
        queue=_queue(runtime.queues.dump_one(instance.id.name)),
    )


def _queue(dump: QueueDump) -> QueueSnapshot:
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
