"""Run of the Module ``global``, and its afterAll hooks: what is done around all other packages, not for one.

It has no chart; its reconciliation is its hooks. BeforeAll hooks wait until everybody who is being loaded has been, once:
they speak of all Modules. See :mod:`~wharfinger.runtime.rounds` for when what is run.
"""

import logging
from dataclasses import dataclass
from typing import ClassVar

from wharfinger.formats.json_value import checksum
from wharfinger.hooks import contexts
from wharfinger.runtime.event_tasks import failed_event
from wharfinger.runtime.hook_runs import Cause, run_hook
from wharfinger.runtime.instance import Instance, Reporter, Tools
from wharfinger.runtime.start_tasks import bound_hooks, snapshots_of
from wharfinger.runtime.status import Stage
from wharfinger.runtime.waits import waiting

log = logging.getLogger(__name__)

BEFORE_ALL = "beforeAll"
AFTER_ALL = "afterAll"


async def run_global(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Run the beforeAll hooks, each with all its snapshots. The first that fails fails the run."""
    reporter.progressed(instance, Stage.APPLIED, "StartingHooks", "waiting until all packages are loaded")
    with waiting(tools):
        await tools.load_phase.wait()
    instance.dirty = False
    for hook in bound_hooks(instance.hooks, BEFORE_ALL):
        reporter.progressed(instance, Stage.APPLIED, "StartingHooks", f"running {hook.name} ({BEFORE_ALL})")
        context = contexts.helm_binding(BEFORE_ALL, snapshots_of(instance, hook))
        await run_hook(instance, tools, reporter, hook, (context,), Cause(BEFORE_ALL))
    record, values = await instance.recorded(tools.cluster), checksum(instance.values)
    await record.update(lambda state: state.applied_as("", values, instance.wanted_settings.checksum))
    reporter.released(instance, 0)
    instance.verified = True


@dataclass(frozen=True, slots=True)
class AfterAllTask:
    """The afterAll hooks, one after the other; the first that fails ends the list, and all of it is run again."""

    instance: Instance
    tools: Tools
    reporter: Reporter
    lane: ClassVar[str] = "afterAll"

    @property
    def name(self) -> str:
        """Of the task."""
        return "AfterAll"

    async def execute(self) -> None:
        """Run them. Raises TaskFailed."""
        for hook in bound_hooks(self.instance.hooks, AFTER_ALL):
            context = contexts.helm_binding(AFTER_ALL, snapshots_of(self.instance, hook))
            try:
                await run_hook(self.instance, self.tools, self.reporter, hook, (context,), Cause(AFTER_ALL))
            except Exception as error:
                raise failed_event(self.instance, self.reporter, hook, self.lane, error) from error
            self.reporter.event_hook_done(self.instance, hook.name, self.lane, "")
