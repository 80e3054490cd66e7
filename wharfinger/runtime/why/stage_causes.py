"""The causes in a package's own stages and tasks: failures, and work in progress with the things that it waits for.

A removal, a resource that cannot be used, and ``spec.suspend`` take precedence over all stages. After these, the failure of
each stage is reported, including failures in separate lanes (event hooks, CRDs). If no stage has failed, the task that works
on the first stage that is not done is reported. A workload that is not ready is reported only once all earlier stages are
done, because until then the workload may be about to be replaced.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from wharfinger.formats.listing import listed
from wharfinger.runtime.inspector import (
    ACCEPTED,
    REMOVED,
    ConditionSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.status import reasons
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import HELD, Reason, explanation
from wharfinger.runtime.status.summary import State
from wharfinger.runtime.why.causes import MOST_NAMED, Cause, Known, moment_after
from wharfinger.runtime.why.remedies import WAIT, of_failed_hook, of_hook, of_reason, of_shares, of_slots, of_work

_HELD: Final = "a slot"
_OF_GATES: Final = {"Disable": "cannot be stopped", "EnabledScript": "cannot run its enabled script"}
"""The tasks of the stage RequirementsMet (:mod:`~wharfinger.runtime.tasks.pipeline`), with the state to report if they fail.
"""
_OF_HOOKS: Final = (Reason.PACKAGE_HOOK_FAILED, Reason.EVENT_HOOK_FAILED)
_BOUND: Final = ("onStartup", "beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm")


def aside_cause(known: Known, package: PackageSnapshot) -> Cause | None:
    """Return a cause that explains the state of the package before any stage is looked at; None if there is no such cause."""
    if (removal := _condition(package, REMOVED)) is not None:
        return _removal(known, package, removal)
    if (blocked := _condition(package, ACCEPTED)) is not None:
        remedy = of_reason(package.name, blocked.reason, permanent=True)
        message = f"{blocked.reason}: {blocked.message}"
        first = _removed_first(known, package, blocked)
        state = "has a change that is held back" if blocked.reason in HELD else "has a resource that cannot be used"
        return Cause(state, message, blocked.last_transition, through=first, remedy=remedy)
    if package.suspended:
        return Cause("is suspended", explanation(Reason.SUSPENDED), remedy=of_reason(package.name, Reason.SUSPENDED))
    return None


def is_being_brought(package: PackageSnapshot) -> bool:
    """Return whether the wanted version is not loaded yet. Until then, the scheduler's snapshot still describes the previous
    version.
    """
    return any(each.status != "True" for each in package.conditions if each.type in (Stage.FETCHED, Stage.LOADED))


def open_stages(package: PackageSnapshot) -> list[ConditionSnapshot]:
    """Return the conditions of the stages that are not done, in the order of the pipeline."""
    return [each for each in package.conditions if each.status != "True" and each.type in set(Stage)]


def gate_failure(known: Known, package: PackageSnapshot) -> Cause | None:
    """Return the failure of the task that stops a package, or of the task that runs its enabled script; None if neither has
    failed.

    Such a failure takes precedence over the reason why the package cannot be on, because the package still runs.
    """
    condition = _condition(package, Stage.REQUIREMENTS)
    failed = next((each for each in package.queue.tasks if each.name in _OF_GATES and each.error), None)
    if condition is None or condition.status == "True" or failed is None:
        return None
    reason, colon, message = failed.error.partition(": ")
    said = replace(condition, reason=reason, message=message) if colon and reasons.known(reason) else condition
    cause = _failure(known, package, said)
    return replace(cause, state=_OF_GATES[failed.name]) if not failed.parked else cause


def stage_causes(known: Known, package: PackageSnapshot) -> Iterator[Cause]:
    """Yield the causes in all stages except RequirementsMet. Work in progress is a cause only if no stage has failed."""
    opened = open_stages(package)
    failed = [
        each
        for index, each in enumerate(opened)
        if each.status == "False" and each.type != Stage.REQUIREMENTS and (index == 0 or each.type != Stage.SCALED)
    ]
    for condition in failed:
        yield _failure(known, package, condition)
    if not failed:
        yield _work(known, package, opened[0] if opened else None)


def _removal(known: Known, package: PackageSnapshot, removal: ConditionSnapshot) -> Cause:
    since = removal.last_transition
    if first := _removed_first(known, package, removal):
        state = f"waits until {listed(first, MOST_NAMED)} {'is' if len(first) == 1 else 'are'} uninstalled"
        return Cause(state, removal.message, since, through=first)
    if removal.reason != Reason.REMOVING:
        message = f"{removal.reason}: {removal.message}{_attempt(known, package, removal)}"
        return Cause("cannot be removed", message, since, remedy=of_reason(package.name, removal.reason))
    if (slot := _slot(known, package, _running(package), since)) is not None:
        return slot
    hook = _hook_of(package, removal.message)
    return Cause(
        "is being removed", removal.message, since, remedy=of_hook(package.name, hook) if hook else WAIT, by_hand=False
    )


def _removed_first(known: Known, package: PackageSnapshot, condition: ConditionSnapshot) -> tuple[str, ...]:
    """Return the dependents of the package that are removed or disabled before it. Return nothing if the package does not wait
    for dependents.
    """
    if condition.reason != Reason.WAITING_FOR_DEPENDENTS:
        return ()
    node = known.node(package.name)
    named = node.dependents if node is not None else ()
    states = {name: each.state for name in named if (each := known.package(name)) is not None}
    going = {name for name, state in states.items() if state in (State.REMOVING, State.DISABLING)}
    return tuple(sorted({*going, *known.leaving(package.name)}))


def _failure(known: Known, package: PackageSnapshot, condition: ConditionSnapshot) -> Cause:
    if condition.reason == Reason.NOT_READY:
        message = f"{_done(package.progress)}{condition.message}"
        remedy = of_reason(package.name, condition.reason)
        return Cause("is applied but not ready", message, condition.last_transition, remedy=remedy)
    task = _task_of(package, condition)
    parked = task is not None and task.parked
    remedy = of_reason(package.name, condition.reason, permanent=parked)
    if condition.reason in _OF_HOOKS and not parked and (hook := _hook_of(package, condition.message)):
        remedy = of_failed_hook(package.name, hook)
    return Cause(
        "failed permanently" if parked else "fails",
        f"{condition.reason}: {condition.message}{_attempt(known, package, condition)}",
        condition.last_transition,
        remedy=remedy,
    )


def _work(known: Known, package: PackageSnapshot, condition: ConditionSnapshot | None) -> Cause:
    """Return the cause for work in progress: the work itself, or its wait for a slot or for the CRDs of other packages."""
    task = _running(package)
    since = condition.last_transition if condition is not None else None
    if condition is not None and condition.reason == Reason.WAITING_FOR_CRDS:
        others = tuple(name for name in known.trying_crds if name != package.name)
        if others:
            return Cause(
                f"waits for the custom resource definitions of {listed(others, MOST_NAMED)}", "", since, through=others
            )
    if (slot := _slot(known, package, task, since)) is not None:
        return slot
    text = condition.message or explanation(condition.reason) if condition is not None else package.message
    if (hook := _hook_of(package, text)) and hook not in text:
        text = f"{text}; running {hook}".lstrip("; ")
    doing = f"{task.name}, attempt {task.attempt}" if task is not None else _queued(package)
    message = "; ".join(each for each in (f"{_done(package.progress)}{text}", doing) if each)
    if condition is not None and condition.reason == Reason.DEFINITIONS_NOT_ESTABLISHED:
        return Cause("waits for the API server", message, since, remedy=of_reason(package.name, condition.reason))
    remedy = of_hook(package.name, hook) if hook else of_work(task.name if task is not None else "")
    return Cause("is at work", message, since, remedy=remedy, by_hand=False)


def _slot(known: Known, package: PackageSnapshot, task: TaskSnapshot | None, since: datetime | None) -> Cause | None:
    if task is None or not task.waits_for.startswith(_HELD) or not package.waits_for:
        return None
    limits = [
        f"{each.kind}: {each.used} of {each.limit} in use, {each.waiting} waiting"
        for each in known.slots
        if each.kind in (*package.waits_for, "work")
    ]
    scarce = [
        each.kind for each in known.slots if each.used >= each.limit and each.kind in (*package.waits_for, "work")
    ]
    full = next((kind for kind in scarce if kind != "work"), scarce[0] if scarce else "")
    remedy = of_slots(full) if full else of_shares()
    message = "; ".join([task.name, *limits])
    return Cause(f"waits for {task.waits_for}", message, since, remedy=remedy, by_hand=False)


def _attempt(known: Known, package: PackageSnapshot, condition: ConditionSnapshot) -> str:
    """Return a text such as ``; attempt 4, next at 12:07:20 UTC (in 3 s)``; empty if no task is known."""
    task = _task_of(package, condition)
    if task is None:
        return ""
    if task.parked:
        return f"; attempt {task.attempt}, parked until something changes"
    if task.retry_in_s is not None:
        return f"; attempt {task.attempt}, next at {moment_after(known.now, task.retry_in_s)}"
    return f"; attempt {task.attempt} is running"


def _task_of(package: PackageSnapshot, condition: ConditionSnapshot) -> TaskSnapshot | None:
    """Return the task that failed with the condition's message, otherwise the first failed task; None if no task has failed."""
    tried = [task for task in package.queue.tasks if task.error]
    exact = (f"{condition.reason}: {condition.message}", condition.message)
    return next((task for task in tried if task.error in exact), tried[0] if tried else None)


def _running(package: PackageSnapshot) -> TaskSnapshot | None:
    running = [task for task in package.queue.tasks if task.running]
    return next((task for task in running if task.waits_for), running[0] if running else None)


def _queued(package: PackageSnapshot) -> str:
    waiting = [task.name for task in package.queue.tasks]
    return f"next {waiting[0]}" if waiting else ""


def _hook_of(package: PackageSnapshot, text: str) -> str:
    """Return the name of the running hook: a hook in flight in the journal, otherwise the hook that ``text`` names; empty if
    neither is known.
    """
    steps = (step.split("/", 2) for operation in package.operations for step in operation.in_flight)
    in_flight = [step[2] for step in steps if len(step) == 3 and step[0] in _BOUND]
    names = sorted((hook.name for hook in package.hooks), key=len, reverse=True)
    return next(iter(in_flight), next((name for name in names if name in text), ""))


def _done(progress: ProgressSnapshot | None) -> str:
    if progress is None:
        return ""
    return f"{progress.completed} of {progress.completed + progress.remaining} objects are ready; "


def _condition(package: PackageSnapshot, kind: str) -> ConditionSnapshot | None:
    return next((each for each in package.conditions if each.type == kind), None)
