"""The tasks that are queued for events of hooks, and the cases in which no task is queued."""

from dataclasses import replace

import pytest

from tests.runtime.support.notes import NO_TOOLS, Notes, instance, learn
from tests.runtime.tasks.test_event_tasks import WATCHING, a_hook, package_hooks
from wharfinger.hooks.running.discovery import HookKind
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.core.hook_events import event_task
from wharfinger.runtime.package.findings import HooksStarting


@pytest.mark.parametrize("state", ["never started", "started", "stopped"])
def test_stopped_hooks_get_no_task(state: str) -> None:
    one, hook, scope = instance(), a_hook(WATCHING % "slow"), WorkScope("hooks")
    hooks, inbox = package_hooks(hook), Inbox(hook, "slow")
    inbox.add(Occurrence(hook.config.kubernetes[0], None))
    if state != "never started":
        learn(one, HooksStarting(scope))
    if state == "stopped":
        scope.cancel("the package's hooks are stopped")
    task = event_task(one, hooks, inbox, NO_TOOLS, Notes())
    assert (task is not None) is (state == "started")
    if task is not None:
        assert (task.lane, task.scope, task.instance) == ("hooks/slow", scope, one)
    assert inbox.waiting  # the queued task will process the events, so no other task is queued


def test_events_do_not_run_readiness_hooks() -> None:
    one, hook = instance(), replace(a_hook(WATCHING % "main"), kind=HookKind.READINESS)
    hooks, inbox = package_hooks(hook), Inbox(hook, "main")
    inbox.add(Occurrence(hook.config.kubernetes[0], None))
    learn(one, HooksStarting(WorkScope("hooks")))
    assert event_task(one, hooks, inbox, NO_TOOLS, Notes()) is None
    assert not inbox.waiting
