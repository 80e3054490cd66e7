"""The tasks of a queue as text. Pure; the caller makes the text safe for a terminal."""

from wharfinger.debug.fields import duration
from wharfinger.runtime.inspector import QueueSnapshot, TaskSnapshot


def doing_text(queue: QueueSnapshot) -> str:
    """Describe the first task that runs, with what it waits for, or else the first task that is parked or will be retried;
    empty if there is no such task.
    """
    for task in (*(task for task in queue.tasks if task.running), *queue.tasks):
        if task.running:
            return f"{task.name} (waits for {task.waits_for})" if task.waits_for else task.name
        if task.parked or task.retry_in_s is not None:
            return f"{task.name} ({task_state_text(task)})"
    return ""


def task_why_text(task: TaskSnapshot) -> str:
    """Return the reasons for the state of a task: what it waits for, why it was queued, and its last error."""
    waits_for = f"waits for {task.waits_for}" if task.waits_for else ""
    return "; ".join(why for why in (waits_for, task.cause, task.error) if why)


def task_state_text(task: TaskSnapshot) -> str:
    """Return the state of a task: ``running``, ``parked``, ``waiting`` or ``again in 14.2s``."""
    if task.running:
        return "running"
    if task.parked:
        return "parked"
    return "waiting" if task.retry_in_s is None else f"again in {duration(task.retry_in_s)}"
