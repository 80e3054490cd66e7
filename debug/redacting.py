"""Snapshots fit to leave the daemon: a dump is pasted into tickets, so nothing in it may be a secret.

Pure. Settings are redacted by their keys. What was found there is then known to be secret, and goes wherever else it
stands: an error that quotes a password is as bad as the setting. What no setting names is found by its form only.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.redaction import MARK, TextRedactor, redact_object
from wharfinger.runtime.inspector import PackageSnapshot, QueueSnapshot


def redact_package(package: PackageSnapshot) -> PackageSnapshot:
    """The package with its settings, messages and task errors redacted."""
    redacted = redact_object(package.settings)
    secrets = frozenset(_found(package.settings, redacted))
    text = TextRedactor(secrets)
    return replace(
        package,
        message=text.redact(package.message),
        tip=text.redact(package.tip),
        settings=redact_object(package.settings, secrets=secrets),
        conditions=tuple(
            replace(condition, message=text.redact(condition.message)) for condition in package.conditions
        ),
        queue=redact_queue(package.queue, secrets),
    )


def redact_queue(queue: QueueSnapshot, secrets: Collection[str]) -> QueueSnapshot:
    """The queue with the errors and causes of its tasks redacted."""
    text = TextRedactor(secrets)
    tasks = (replace(task, error=text.redact(task.error), cause=text.redact(task.cause)) for task in queue.tasks)
    return replace(queue, tasks=tuple(tasks))


def secrets_in(packages: Iterable[PackageSnapshot]) -> frozenset[str]:
    """Every value in the settings of ``packages`` that is under a key which says that it is a secret."""
    return frozenset(
        secret for package in packages for secret in _found(package.settings, redact_object(package.settings))
    )


def _found(settings: JsonObject, redacted: JsonObject) -> set[str]:
    """What was replaced: both are walked side by side, since redaction keeps the shape and the order."""
    found: set[str] = set()
    pairs: list[tuple[JsonValue, JsonValue]] = [(settings, redacted)]
    while pairs:
        before, after = pairs.pop()
        if isinstance(before, dict) and isinstance(after, dict):
            pairs.extend(zip(before.values(), after.values(), strict=True))
        elif isinstance(before, list) and isinstance(after, list):
            pairs.extend(zip(before, after, strict=True))
        elif after == MARK and isinstance(before, str | int | float) and before != MARK:
            found.add(str(before))
    return found
