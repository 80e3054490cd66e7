"""The tasks of the Module ``global``: its run, with the beforeAll hooks, and its afterAll hooks. All other packages run after
the beforeAll hooks and before the afterAll hooks.

The Module has no chart: its reconciliation only runs hooks. BeforeAll hooks see all Modules, so they wait until all packages
that are being loaded have ended their first attempt to load. See :mod:`~wharfinger.runtime.rounds.machine` for the order.
"""

import logging
from dataclasses import dataclass
from typing import ClassVar, Protocol

from wharfinger.hooks.running.discovery import Hook
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.events import EventHookDone, Progressed, Released
from wharfinger.runtime.package.findings import ValuesRead, Verified
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.package.stoppable import waiting
from wharfinger.runtime.status.failures import EXPECTED, classify
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.event_tasks import failed_event
from wharfinger.runtime.tasks.hook_runs import Cause, run_hook, with_snapshots
from wharfinger.runtime.tasks.start_tasks import bound_hooks

log = logging.getLogger(__name__)

BEFORE_ALL = "beforeAll"
AFTER_ALL = "afterAll"


async def run_global(instance: Instance, tools: Tools, host: Host) -> Verified:
    """Run the beforeAll hooks, each with all its snapshots. The run ends at the first hook that fails."""
    host.emit(instance, Progressed(Stage.APPLIED, "StartingHooks", "waiting until all packages are loaded"))
    with waiting(tools):
        await tools.load_phase.wait()
    host.emit(instance, ValuesRead())
    for hook in bound_hooks(instance.files.hooks, BEFORE_ALL):
        host.emit(instance, Progressed(Stage.APPLIED, "StartingHooks", f"running {hook.name} ({BEFORE_ALL})"))
        telling = with_snapshots(instance, hook, BEFORE_ALL)
        await run_hook(instance, tools, host, hook, telling, Cause(BEFORE_ALL))
    record, settings = await instance.recorded(tools), instance.desired.settings.checksum
    await record.update(lambda state: state.applied_as("", state.values, settings))
    host.emit(instance, Released(0))
    return Verified()


class Turns(Protocol):
    """The methods of :class:`~wharfinger.runtime.core.global_rounds.GlobalRounds` that `AfterAllTask` calls.

    A *turn* is one run of all afterAll hooks. Its ``scope`` identifies the turn in reports.
    """

    async def until_gone(self) -> None:
        """Wait until no package is being disabled or removed any more. The hooks that run during a disable or a removal are
        part of it.
        """
        ...

    def turn_begins(self, scope: WorkScope) -> None:
        """Record that the afterAll hooks begin to run."""
        ...

    def turn_failed(self, scope: WorkScope) -> bool:
        """Record that an attempt to run the afterAll hooks failed; return whether to retry them."""
        ...


@dataclass(frozen=True, slots=True)
class AfterAllTask:
    """The task that runs the afterAll hooks one after the other. The first failure ends the attempt; the next attempt runs all
    hooks again.

    There is no next attempt if another round has begun meanwhile: that round may resolve the failure, and runs the afterAll
    hooks at its own end. ``values`` is the checksum of the global values with which all packages were run.
    """

    instance: Instance
    tools: Tools
    host: Host
    turns: Turns
    scope: WorkScope
    values: str
    lane: ClassVar[str] = "afterAll"

    @property
    def name(self) -> str:
        """The name of the task."""
        return "AfterAll"

    async def execute(self) -> None:
        """Run the hooks. Raises TaskFailed."""
        with waiting(self.tools):
            await self.turns.until_gone()
        self.turns.turn_begins(self.scope)
        try:
            await self._record()
            for hook in bound_hooks(self.instance.files.hooks, AFTER_ALL):
                await self._run(hook)
        except TaskFailed as failure:
            if self.turns.turn_failed(self.scope):
                raise
            log.info("%s: %s; another round has begun", self.instance.id, failure.message)

    async def _record(self) -> None:
        """Record the checksum of the values, so that a new process does not run all packages again because of these values.
        Raises TaskFailed.
        """
        try:
            record = await self.instance.recorded(self.tools)
            await record.update(lambda state: state.applied_as("", self.values, state.settings))
        except EXPECTED as error:
            raise TaskFailed(classify(error, self.instance.masked).message, permanent=False) from error

    async def _run(self, hook: Hook) -> None:
        """Run one hook. Raises TaskFailed."""
        telling = with_snapshots(self.instance, hook, AFTER_ALL)
        try:
            await run_hook(self.instance, self.tools, self.host, hook, telling, Cause(AFTER_ALL))
        except Exception as error:
            raise failed_event(self.instance, self.host, hook, self.lane, error) from error
        self.host.emit(self.instance, EventHookDone(hook.name, self.lane, ""))
