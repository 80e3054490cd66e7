"""A `Host` that records the calls of tasks, and instances of packages without a runtime around them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from msgspec import structs

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.events import (
    EventHookDone,
    HookDone,
    Progressed,
    Reachable,
    Removing,
    Report,
    ReportBase,
    StageFailed,
    Succeeded,
    ValuesChanged,
    Voted,
    WarnedOf,
)
from wharfinger.runtime.package.findings import Finding
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.resources.identity import AppId, PackageId
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage


class NoTools:
    """A stand-in for `Tools`, for tasks that end before they use a tool. It has only what tasks need to record their steps."""

    def __init__(self) -> None:
        self.journal = Journal(None)
        self.webhooks = None


NO_TOOLS = cast("Tools", NoTools())


@dataclass
class Notes:
    """The recorded calls, in order."""

    said: list[tuple[str, Stage | None]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def emit(self, instance: Instance, event: Report | Finding) -> None:
        if not isinstance(event, ReportBase):  # a finding is not noted, but changes the package
            learn(instance, event)
            return
        said, stage, messages = _said(event)
        self.said.append((said, stage))
        self.messages += messages

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        self.said.append((f"later {task.name} in {lane}", None))
        return True

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        self.said.append((f"waits for {inbox.hook.name}", None))

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        return ()

    def global_values(self) -> JsonObject:
        return {}

    def global_settings(self) -> JsonObject:
        return {}


def _said(event: Report) -> tuple[str, Stage | None, tuple[str, ...]]:
    """Return a report as words: its name, its stage, and its messages."""
    match event:
        case Progressed(stage) | Succeeded(stage):
            return type(event).__name__.lower(), stage, ()
        case StageFailed(stage, failure):
            return f"failed {failure.reason}", stage, (failure.message,)
        case Reachable(urls):
            return "reachable", None, tuple(url for url, _ in urls)
        case WarnedOf(subject, warnings):
            return f"warned of {subject}", None, warnings
        case Removing(reason):
            return f"removing {reason}", None, ()
        case HookDone(hook, error):
            return f"ran {hook}", None, (error,)
        case ValuesChanged(hook):
            return f"changed by {hook}", None, ()
        case Voted(enabled):
            return f"voted {enabled}", None, ()
        case EventHookDone(hook, lane, error):
            return f"event hook {hook} in {lane}", None, (error,)
        case _:
            return type(event).__name__.lower(), None, ()


SHOP = AppId("prod", "shop")


def instance(identity: PackageId = SHOP) -> Instance:
    """Return an instance that has just been created."""
    return Instance(Package(identity, statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC))))


def learn(one: Instance, finding: Finding) -> None:
    """Pass a finding to the state machine of the instance. Check that the finding has no effects."""
    assert one.take(finding, Around(datetime(2026, 1, 1, tzinfo=UTC), None)) == ()


def put(one: Instance, status: PackageStatus | None = None, **records: Mapping[str, object]) -> None:
    """Set fields of an instance's records, as if its machine had set them: ``put(one, desired={"version": "1.2.3"})``."""
    made = {name: structs.replace(getattr(one.state, name), **fields) for name, fields in records.items()}
    one.state = structs.replace(one.state, status=status or one.state.status, **made)
