"""The paths of calls through the runtime. One path begins when the informer sees a changed spec, and ends at the queue. The
other one begins when a watch sees an event for a hook, and ends at the task that runs the hook. The tests limit how often such
a path changes from one file to another.

The tests patch some functions, the *places*, and let a real package run. At each place, they compare the stack of open calls with
the stack at the place before: the path continues from the innermost call that both stacks have. Each file that the path enters is
a *station*. A *return* is a station in a file that the path has left before. Calls that have ended before the next place are not
part of the path.
"""

import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

import wharfinger
from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_hook_runs import COUNTING, config_map, hooked, until_data
from wharfinger.cluster.watch.work_queue import WorkQueue
from wharfinger.hooks.watching.monitor_backlog import Backlog
from wharfinger.queue.service import Queues
from wharfinger.runtime.controllers.guard import Guard
from wharfinger.runtime.controllers.version_choices import VersionChoices
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package import instance
from wharfinger.runtime.resources.lookup import Lookup
from wharfinger.runtime.tasks.event_tasks import EventHookTask

pytestmark = pytest.mark.unmeasured

MAX_INPUTS: Final = 25
MOST_RETURNS: Final = 10
MOST_OF_AN_EVENT: Final = 15


PACKAGE: Final = f"{Path(wharfinger.__file__).parent}/"
"""The folder of the product. The checkout itself may have the same name, so the last part of the path is not sufficient."""


def file_of(path: str) -> str:
    return path.removeprefix(PACKAGE) if path.startswith(PACKAGE) else ""


def open_calls(frame: FrameType | None) -> list[FrameType]:
    """Return the open calls of Wharfinger, the outermost first."""
    calls: list[FrameType] = []
    while frame is not None:
        if file_of(frame.f_code.co_filename):
            calls.append(frame)
        frame = frame.f_back
    return calls[::-1]


@dataclass
class Way:
    """The files of Wharfinger through which an input passes. `at` adds the functions whose calls are observed. The path begins
    at a call of one of these functions, and ends at a call of another one.
    """

    stations: list[str] = field(default_factory=list)
    is_begun: bool = False
    is_over: bool = False
    _open: list[FrameType] = field(default_factory=list)

    def at(
        self, stack: ExitStack, owner: object, call: str, file: str, *, begins: str | None = None, ends: bool = False
    ) -> None:
        """Add the function ``owner.call``, which is defined in ``file``, to the places at which the path is observed.

        If ``begins`` is "", the path begins at the first call of this function. If ``begins`` is another text, the path begins at
        the first call whose last argument is this text. If ``ends`` is true, the path ends at the first call of this function.
        """
        original = getattr(owner, call)

        def noted(*args: object, **named: object) -> object:
            self.is_begun = self.is_begun or (begins is not None and begins in ("", args[-1]))
            if self.is_begun and not self.is_over:
                self.is_over = ends
                self._walk(open_calls(sys._getframe(1)), file)
            return original(*args, **named)

        stack.enter_context(pytest.MonkeyPatch.context()).setattr(owner, call, noted)

    def _walk(self, calls: list[FrameType], end: str) -> None:
        common = 0
        while common < min(len(calls), len(self._open)) and calls[common] is self._open[common]:
            common += 1
        for file in (*(file_of(call.f_code.co_filename) for call in calls[max(common - 1, 0) :]), end):
            if self.stations[-1:] != [file]:
                self.stations.append(file)
        self._open = calls

    @property
    def returns(self) -> int:
        return len(self.stations) - len(set(self.stations))


async def test_a_spec_change_passes_few_files_from_informer_to_queue(tmp_path: Path) -> None:
    way = Way()
    with ExitStack() as stack:
        async with open_world(tmp_path) as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            await world.push("web", "2.0.0")
            way.at(stack, WorkQueue, "add", "cluster/watch/work_queue.py", begins="prod.shop")
            way.at(stack, VersionChoices, "settle", "runtime/controllers/version_choices.py")
            way.at(stack, Guard, "admit", "runtime/controllers/guard.py")
            way.at(stack, Lookup, "of", "runtime/resources/lookup.py")
            way.at(stack, LifecycleStore, "_step", "runtime/lifecycle/lifecycle_machine.py")
            way.at(stack, instance, "step", "runtime/package/machine.py")
            way.at(stack, Queues, "enqueue", "queue/service.py", ends=True)
            await world.change("prod", "shop", {"packageVersion": "2.0.0"})
            await world.until_state("prod", "shop", "Ready")
    assert way.is_over
    assert way.stations[:2] == ["runtime/controllers/service.py", "cluster/watch/work_queue.py"]
    assert len(way.stations) <= MAX_INPUTS, way.stations
    assert way.returns <= MOST_RETURNS, way.stations


async def test_an_event_passes_few_files_from_watch_to_task(tmp_path: Path) -> None:
    way = Way()
    with ExitStack() as stack:
        async with open_world(tmp_path) as world:
            await world.repository()
            folder = hooked(tmp_path / "mod", {"count.sh": COUNTING}, name="hooked")
            await world.push_folder(folder, "hooked", "1.0.0")
            await world.create("prod", "shop", package="hooked")
            await world.until_state("prod", "shop", "Ready")
            way.at(stack, Backlog, "add", "hooks/watching/monitor_backlog.py", begins="")
            way.at(stack, Queues, "enqueue", "queue/service.py")
            way.at(stack, EventHookTask, "execute", "runtime/tasks/event_tasks.py", ends=True)
            await world.client.create(config_map("seen", {"watch": "me"}))
            await until_data(world, "out", "seen", "1")
    assert way.is_over
    assert way.stations[0] == "cluster/watch/object_stream.py"
    assert len(way.stations) <= MOST_OF_AN_EVENT, way.stations
