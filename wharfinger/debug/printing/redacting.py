"""Snapshots without secrets: dumps are pasted into tickets, so every snapshot that leaves the daemon is redacted.

Pure. Settings and values are redacted by their keys. The secrets found there, and those that the runtime names (write-only
settings, values from Secrets), are then redacted in all other texts too, because an error message may quote a
password. All other secrets are recognized only by their form.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import assert_never

from wharfinger.formats.redaction.redaction import redact_object, redacted_texts
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.formats.schemas.problem import Problem
from wharfinger.runtime.daemon_details import DaemonSnapshot, WarmPoolSnapshot
from wharfinger.runtime.inspector import (
    HistorySnapshot,
    HookSnapshot,
    IndexSnapshot,
    InvalidSettings,
    OperationSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    RepositorySnapshot,
    SettingsAnswer,
    UnknownSettings,
    ValidSettings,
)
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DifferenceSnapshot,
    HookSnapshotsSnapshot,
    LogSnapshot,
    ObjectChangeSnapshot,
    ResourceSnapshot,
)
from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot


def redact_package(package: PackageSnapshot) -> PackageSnapshot:
    """Return the package with its settings, its values and all texts that may quote them redacted, and without ``secrets``."""
    secrets = secrets_of(package)
    text = TextRedactor(secrets)
    return replace(
        package,
        message=text.redact(package.message),
        tip=text.redact(package.tip),
        settings=redact_object(package.settings, secrets=secrets),
        values=redact_object(package.values, secrets=secrets),
        conditions=tuple(
            replace(condition, message=text.redact(condition.message)) for condition in package.conditions
        ),
        queue=redact_queue(package.queue, secrets),
        hooks=tuple(_redact_hook(hook, text) for hook in package.hooks),
        progress=_redact_progress(package.progress, text),
        warnings=_redact_texts(package.warnings, text),
        unmatched=_redact_texts(package.unmatched, text),
        update=text.redact(package.update),
        rollback=text.redact(package.rollback),
        urls=_redact_texts(package.urls, text),
        drift=_redact_texts(package.drift, text),
        failing=_redact_texts(package.failing, text),
        operations=tuple(_redact_operation(operation, text) for operation in package.operations),
        monitors=tuple(
            replace(monitor, binding=text.redact(monitor.binding), last_error=text.redact(monitor.last_error))
            for monitor in package.monitors
        ),
        secrets=(),
    )


def redact_queue(queue: QueueSnapshot, secrets: Collection[str]) -> QueueSnapshot:
    """Return the queue with the texts of its tasks redacted: names, errors, causes, and what the tasks wait for."""
    text = TextRedactor(secrets)
    tasks = (
        replace(
            task,
            name=text.redact(task.name),
            error=text.redact(task.error),
            cause=text.redact(task.cause),
            waits_for=text.redact(task.waits_for),
        )
        for task in queue.tasks
    )
    return replace(queue, tasks=tuple(tasks))


def redact_repository(repository: RepositorySnapshot, secrets: Collection[str]) -> RepositorySnapshot:
    """Return the repository with its texts redacted: errors may quote answers of registries, and descriptions come from
    the authors of packages.
    """
    text = TextRedactor(secrets)
    return replace(
        repository,
        source=text.redact(repository.source),
        message=text.redact(repository.message),
        packages=tuple(_redact_index(each, text) for each in repository.packages),
        labels=_redact_texts(repository.labels, text),
    )


def redact_pool(pool: WarmPoolSnapshot, secrets: Collection[str]) -> WarmPoolSnapshot:
    """Return the pool with secrets removed from its ``problem``, which may quote the output of a program."""
    return replace(pool, problem=TextRedactor(secrets).redact(pool.problem))


def redact_daemon(daemon: DaemonSnapshot) -> DaemonSnapshot:
    """Return the snapshot of the daemon with its texts redacted, because the reasons why the daemon waits may quote errors of
    the API server. No secrets are known here, so they are only recognized by their form.
    """
    text = TextRedactor()
    return replace(daemon, cluster=text.redact(daemon.cluster), standby=text.redact(daemon.standby))


def redact_node(node: NodeSnapshot, secrets: Collection[str]) -> NodeSnapshot:
    """Return the node with its messages and those of its votes redacted, because they may quote the output of an enabled
    script."""
    text = TextRedactor(secrets)
    return replace(
        node,
        message=text.redact(node.message),
        lacks=tuple(replace(lack, state=text.redact(lack.state)) for lack in node.lacks),
        votes=tuple(replace(vote, message=text.redact(vote.message)) for vote in node.votes),
    )


def redact_explanation(explanation: ExplanationSnapshot, secrets: Collection[str]) -> ExplanationSnapshot:
    """Return the explanation with every text redacted except names: texts may quote messages, errors and output of scripts."""
    text = TextRedactor(secrets)
    return replace(
        explanation,
        causes=tuple(
            replace(cause, state=text.redact(cause.state), message=text.redact(cause.message))
            for cause in explanation.causes
        ),
        remedy=text.redact(explanation.remedy),
        also=_redact_texts(explanation.also, text),
    )


def redact_history(history: HistorySnapshot, secrets: Collection[str]) -> HistorySnapshot:
    """Return the history with every text of its events redacted."""
    text = TextRedactor(secrets)
    return replace(
        history,
        events=tuple(
            replace(
                event,
                event=text.redact(event.event),
                cause=text.redact(event.cause),
                before=text.redact(event.before),
                after=text.redact(event.after),
            )
            for event in history.events
        ),
    )


def redact_resource(resource: ResourceSnapshot, secrets: Collection[str]) -> ResourceSnapshot:
    """Return the object with its texts redacted, because messages of the API server may quote the applied object."""
    text = TextRedactor(secrets)
    return replace(
        resource,
        message=text.redact(resource.message),
        error=text.redact(resource.error),
        drift=text.redact(resource.drift),
        labels=_redact_texts(resource.labels, text),
    )


def redact_events(events: Iterable[ClusterEventSnapshot], secrets: Collection[str]) -> tuple[ClusterEventSnapshot, ...]:
    """Return the Events with their messages redacted."""
    text = TextRedactor(secrets)
    return tuple(replace(each, message=text.redact(each.message)) for each in events)


def redact_log(log: LogSnapshot, secrets: Collection[str]) -> LogSnapshot:
    """Return the log with its lines redacted again: a secret may have become known after a line was kept."""
    text = TextRedactor(secrets)
    return replace(log, lines=tuple(replace(line, message=text.redact(line.message)) for line in log.lines))


def redact_difference(difference: DifferenceSnapshot, secrets: Collection[str]) -> DifferenceSnapshot:
    """Return the difference with its texts redacted. Values of Secrets and of sensitive keys are masked already."""
    text = TextRedactor(secrets)
    return replace(
        difference,
        changes=tuple(_redact_change(each, text) for each in difference.changes),
        notes=_redact_texts(difference.notes, text),
        problem=text.redact(difference.problem),
    )


def redact_snapshots(
    snapshots: Iterable[HookSnapshotsSnapshot], secrets: Collection[str]
) -> tuple[HookSnapshotsSnapshot, ...]:
    """Return the snapshots with their values redacted as in a dump."""
    return tuple(replace(each, bindings=redact_object(each.bindings, secrets=secrets)) for each in snapshots)


def redact_tasks(tasks: Iterable[DaemonTaskSnapshot], secrets: Collection[str]) -> tuple[DaemonTaskSnapshot, ...]:
    """Return the tasks with their names and causes redacted."""
    text = TextRedactor(secrets)
    return tuple(replace(each, name=text.redact(each.name), cause=text.redact(each.cause)) for each in tasks)


def redact_answer(answer: SettingsAnswer, secrets: Collection[str]) -> SettingsAnswer:
    """Return the answer with its messages redacted: a rule may quote current settings that are not in the request."""
    text = TextRedactor(secrets)
    match answer:
        case ValidSettings(_, warnings):
            return replace(answer, warnings=_redact_problems(warnings, text))
        case InvalidSettings(_, problems, warnings):
            redacted = _redact_problems(problems, text)
            return replace(answer, problems=redacted, warnings=_redact_problems(warnings, text))
        case UnknownSettings(why):
            return UnknownSettings(text.redact(why))
        case _:
            assert_never(answer)


def _redact_problems(problems: Iterable[Problem], text: TextRedactor) -> tuple[Problem, ...]:
    return tuple(Problem(text.redact(each.path), text.redact(each.message)) for each in problems)


def secrets_in(packages: Iterable[PackageSnapshot]) -> frozenset[str]:
    """Return all secrets that any of ``packages`` knows."""
    return frozenset(secret for package in packages for secret in secrets_of(package))


def secrets_of(package: PackageSnapshot) -> frozenset[str]:
    """Return the secrets that a package lists, and the values in its settings and values under keys that mark a secret."""
    return frozenset(package.secrets).union(*(redacted_texts(shown) for shown in (package.settings, package.values)))


def _redact_change(change: ObjectChangeSnapshot, text: TextRedactor) -> ObjectChangeSnapshot:
    fields = (
        replace(field, before=text.redact(field.before), after=text.redact(field.after)) for field in change.fields
    )
    return replace(change, fields=tuple(fields), note=text.redact(change.note))


def _redact_hook(hook: HookSnapshot, text: TextRedactor) -> HookSnapshot:
    bindings = tuple(text.redact(binding) for binding in hook.bindings)
    return replace(hook, bindings=bindings, last_error=text.redact(hook.last_error))


def _redact_progress(progress: ProgressSnapshot | None, text: TextRedactor) -> ProgressSnapshot | None:
    if progress is None:
        return None
    return replace(progress, waiting_for=_redact_texts(progress.waiting_for, text))


def _redact_operation(operation: OperationSnapshot, text: TextRedactor) -> OperationSnapshot:
    return replace(
        operation,
        completed=_redact_texts(operation.completed, text),
        in_flight=_redact_texts(operation.in_flight, text),
        interrupted=_redact_texts(operation.interrupted, text),
    )


def _redact_index(index: IndexSnapshot, text: TextRedactor) -> IndexSnapshot:
    versions = (
        replace(
            each,
            description=text.redact(each.description),
            changelog=_redact_texts(each.changelog, text),
            deprecated=text.redact(each.deprecated),
            unreadable=text.redact(each.unreadable),
        )
        for each in index.detailed
    )
    return replace(index, detailed=tuple(versions), problem=text.redact(index.problem))


def _redact_texts(texts: Iterable[str], text: TextRedactor) -> tuple[str, ...]:
    return tuple(text.redact(each) for each in texts)
