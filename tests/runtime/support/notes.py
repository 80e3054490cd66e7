"""A Reporter that writes down what it is told, and instances without a world."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.resources.identity import AppId, PackageId
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage


class NoTools:
    """What tasks need that end before they need anything: where they would note their steps."""

    def __init__(self) -> None:
        self.journal = Journal(None)


NO_TOOLS = cast("Tools", NoTools())


@dataclass
class Notes:
    """What was said, in order."""

    said: list[tuple[str, Stage | None]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        self.said.append(("progressed", stage))

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        self.said.append(("succeeded", stage))

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        self.said.append((f"failed {failure.reason}", stage))
        self.messages.append(failure.message)

    def placed(self, instance: Instance) -> None:
        self.said.append(("placed", None))

    def released(self, instance: Instance, revision: int) -> None:
        self.said.append(("released", None))

    def tracked(self, instance: Instance, completed: Iterable[str], remaining: Iterable[str]) -> None:
        self.said.append(("tracked", None))

    def reachable(self, instance: Instance, urls: Iterable[tuple[str, str]]) -> None:
        self.said.append(("reachable", None))
        self.messages += (url for url, _ in urls)

    def warned(self, instance: Instance, subject: str, warnings: tuple[str, ...]) -> None:
        self.said.append((f"warned of {subject}", None))
        self.messages += warnings

    def uninstalled(self, instance: Instance) -> None:
        self.said.append(("uninstalled", None))

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        self.said.append((f"removing {reason}", None))

    def hook_ran(self, instance: Instance, hook: str, error: str) -> None:
        self.said.append((f"ran {hook}", None))
        self.messages.append(error)

    def values_changed(self, instance: Instance, hook: str) -> None:
        self.said.append((f"changed by {hook}", None))

    def voted(self, instance: Instance, enabled: bool | None, reason: str, *, failed: bool) -> None:
        self.said.append((f"voted {enabled}", None))

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        self.said.append((f"later {task.name} in {lane}", None))
        return True

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        self.said.append((f"waits for {inbox.hook.name}", None))

    def event_hook_done(self, instance: Instance, hook: str, lane: str, error: str) -> None:
        self.said.append((f"event hook {hook} in {lane}", None))
        self.messages.append(error)

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        return ()

    def global_values(self) -> JsonObject:
        return {}

    def global_settings(self) -> JsonObject:
        return {}


SHOP = AppId("prod", "shop")


def instance(identity: PackageId = SHOP) -> Instance:
    """An instance just heard of."""
    return Instance(identity, statuses.fresh(1, datetime(2026, 1, 1, tzinfo=UTC)))
