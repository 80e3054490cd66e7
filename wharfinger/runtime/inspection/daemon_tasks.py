"""The trio tasks of this process as a tree. A task is shown with its package, the reason for the package's work, and the place
where the task waits.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import trio

from wharfinger.queue.lane import package_in
from wharfinger.runtime.inspector import QueueSnapshot
from wharfinger.runtime.package_details import DaemonTaskSnapshot

MAX_TASKS: Final = 20_000
MAX_DEPTH: Final = 100
_MAX_FRAMES: Final = 200


def daemon_tasks(queues: Mapping[str, QueueSnapshot]) -> tuple[DaemonTaskSnapshot, ...]:
    """Return the trio tasks of this process, each after its parent; at most MAX_TASKS.

    ``queues`` has the queue of each package. A trio task is shown with the names and causes of all running tasks in the queue
    of its package. Must be called in a trio task.
    """
    root = trio.lowlevel.current_root_task()
    if root is None:
        return ()
    found: list[DaemonTaskSnapshot] = []
    for task, depth in _walk(root):
        package = package_in(task.context)
        queue = queues.get(package)
        running = [each for each in queue.tasks if each.running] if queue is not None else []
        cause = "; ".join(f"{each.name}: {each.cause}" if each.cause else each.name for each in running)
        found.append(DaemonTaskSnapshot(_short(task.name), depth, package, cause, _place(task)))
        if len(found) >= MAX_TASKS:
            break
    return tuple(found)


def _walk(root: trio.lowlevel.Task) -> Iterator[tuple[trio.lowlevel.Task, int]]:
    waiting = [(root, 0)]
    while waiting:
        task, depth = waiting.pop()
        yield task, min(depth, MAX_DEPTH)
        children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        waiting += [(child, depth + 1) for child in sorted(children, key=lambda child: child.name, reverse=True)]


def _place(task: trio.lowlevel.Task) -> str:
    """Return the innermost function of Wharfinger in which the task waits, such as ``wharfinger.queue.slots.use``."""
    place = ""
    for number, (frame, _line) in enumerate(task.iter_await_frames()):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("wharfinger."):
            place = f"{module}.{frame.f_code.co_qualname}"
        if number >= _MAX_FRAMES:
            break
    return place


def _short(name: str) -> str:
    """Return the name of a task; only its last part if the task was named after a function of Wharfinger or trio."""
    return name.rpartition(".")[2] if name.startswith(("wharfinger.", "trio.")) else name
