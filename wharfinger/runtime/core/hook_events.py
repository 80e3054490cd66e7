"""The events of hooks: a changed object or a due schedule becomes a task in a lane of the hook's package."""

from wharfinger.hooks.running.discovery import HookKind
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.tasks.event_tasks import EventHookTask


def event_task(instance: Instance, hooks: PackageHooks, inbox: Inbox, tools: Tools, host: Host) -> EventHookTask | None:
    """Return the task that notifies a hook of the events in its inbox. Return None if the package's hooks are stopped, or if
    the hook is a readiness hook.

    A task has the scope of its package's hooks, so it does not run any more once the hooks are stopped.
    """
    scope = instance.hooks.scope
    if scope is None or scope.cancelled:
        return None
    if inbox.hook.kind is HookKind.READINESS:
        inbox.remove_processed(
            inbox.offered()
        )  # a readiness hook runs only when a check of readiness is due, with the snapshots at that time
        return None
    return EventHookTask(inbox.hook, inbox, hooks, instance, tools, host, scope=scope)
