"""The tasks of a package's life, put together: which follow each other in which operation, and which stage each belongs to.

::

    update          Disable (what is loaded, keeping the release) → Download → Install → Load
    reconciliation  Configure → Startup → Run → WaitReady
    pause, disable  Disable (keeping the release, or taking it away)
    vote            EnabledScript
    removal         Uninstall (with the hooks that surround it) → Undeploy

Each task does one thing through one seam and is written to be run again at any moment: after a crash, the pipeline starts from
the top and finds most of its work done. What a task is, is in :mod:`~wharfinger.runtime.stage_task`; what each does, in
:mod:`~wharfinger.runtime.bring_tasks`, :mod:`~wharfinger.runtime.start_tasks` and :mod:`~wharfinger.runtime.run_tasks`.
"""

from dataclasses import dataclass

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.bring_tasks import ask_enabled_script, download, install, load
from wharfinger.runtime.instance import Instance, Reporter, Tools, Work
from wharfinger.runtime.run_tasks import await_ready, pause, run, take_away, undeploy, uninstall
from wharfinger.runtime.stage_task import ScopedReporter, StageTask
from wharfinger.runtime.start_tasks import configure, startup
from wharfinger.runtime.status import Stage


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Makes the tasks of one operation of one package."""

    instance: Instance
    tools: Tools
    reporter: Reporter
    scope: WorkScope

    def update(self) -> tuple[StageTask, ...]:
        """What brings a version here and loads it; the hooks of the version before rest meanwhile."""
        version = self.instance.version
        return (
            *self._rest(),
            self._task(f"Download:{version}", download, Stage.FETCHED, ends_stage=False),
            self._task(f"Install:{version}", install, Stage.FETCHED),
            self._task("Load", load, Stage.LOADED),
        )

    def _rest(self) -> tuple[StageTask, ...]:
        if self.instance.definition is None:
            return ()
        return (self._task("Disable", pause, Stage.HOOKS, ends_stage=False, parks=False),)

    def reconciliation(self) -> tuple[StageTask, ...]:
        """What configures and runs a loaded version."""
        return (
            self._task("Configure", configure, Stage.CONFIGURED),
            self._task("Startup", startup, Stage.HOOKS),
            self._task("Run", run, Stage.APPLIED),
            self._task("WaitReady", await_ready, Stage.SCALED),
        )

    def disable(self, *, keep: bool) -> tuple[StageTask, ...]:
        """What stops a loaded version; ``keep``: what it brought into the cluster stays."""
        work = pause if keep else take_away
        return (self._task("Disable", work, Stage.REQUIREMENTS, ends_stage=False, parks=False),)

    def vote(self) -> tuple[StageTask, ...]:
        """What asks the enabled script again."""
        return (self._task("EnabledScript", ask_enabled_script, Stage.REQUIREMENTS, ends_stage=False, parks=False),)

    def removal(self) -> tuple[StageTask, ...]:
        """What takes everything away."""
        return (self._task("Uninstall", uninstall, None), self._task("Undeploy", undeploy, None))

    def _task(
        self, name: str, work: Work, stage: Stage | None, *, ends_stage: bool = True, parks: bool = True
    ) -> StageTask:
        reporter = ScopedReporter(self.reporter, self.scope)
        return StageTask(name, stage, ends_stage, work, self.instance, self.tools, reporter, parks)
