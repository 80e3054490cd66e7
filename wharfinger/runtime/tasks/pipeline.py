"""The pipelines: the tasks of each operation in their order, and the stage to which each task belongs.

::

    update          Disable (stops the hooks of the loaded version) → Download → Install → Load
    CRDs            EnsureCRDs, in a lane of its own
    reconciliation  Configure → AwaitCRDs → Startup → EnsureWebhooks → Run → WaitReady
    pause, disable  Disable (keeps the release at a pause, otherwise uninstalls it)
    suspend         Suspend, or LoadStored if nothing is loaded
    vote            EnabledScript, in a lane of its own
    removal         Uninstall (with beforeDeleteHelm and afterDeleteHelm hooks) → Purge → Undeploy
    move            Leave → Undeploy (deletes files on the disk only)

A task may be run again at any time: after a crash, the pipeline starts from the first task, and finds that most of the work
is done. :mod:`~wharfinger.runtime.tasks.stage_task` defines a task. The other modules of this folder have the functions that do
the work of the tasks.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.lifecycle.steps import Steps
from wharfinger.runtime.package.instance import Host, Instance, Tools, Work
from wharfinger.runtime.resources.identity import is_global
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.crd_tasks import await_crds, ensure_crds, ensure_webhooks
from wharfinger.runtime.tasks.global_tasks import run_global
from wharfinger.runtime.tasks.install_tasks import ask_enabled_script, download, install, load, load_stored
from wharfinger.runtime.tasks.purge import purge
from wharfinger.runtime.tasks.run_tasks import (
    await_ready,
    disable_and_uninstall,
    leave,
    pause,
    run,
    stop_hooks,
    undeploy,
    uninstall,
)
from wharfinger.runtime.tasks.stage_task import ScopedHost, StageTask
from wharfinger.runtime.tasks.start_tasks import configure, startup

VOTE_LANE: Final = "vote"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The factory for the tasks of one operation of one package."""

    instance: Instance
    tools: Tools
    host: Host
    scope: WorkScope

    def update(self) -> tuple[StageTask, ...]:
        """Return the tasks that stop the hooks of the loaded version, and then fetch and load the wanted version."""
        version, steps = self.instance.desired.version, self._steps(Operation.UPDATE)
        return (
            *self._rest("Disable", stop_hooks),
            self._task(f"Download:{version}", download, Stage.FETCHED, steps, ends_stage=False),
            self._task(f"Install:{version}", install, Stage.FETCHED, steps),
            self._task("Load", load, Stage.LOADED, steps),
        )

    def suspend(self) -> tuple[StageTask, ...]:
        """Return the tasks that suspend a package. If the package is installed but not loaded, its files are loaded instead, so
        that other packages still find its installed version.
        """
        if self.instance.files.definition is None and self.instance.status.installed_since is not None:
            return (self._task("LoadStored", load_stored, Stage.LOADED, ends_stage=False, parks=False),)
        return self._rest("Suspend", pause)

    def _rest(self, name: str, work: Work) -> tuple[StageTask, ...]:
        if self.instance.files.definition is None:
            return ()
        return (self._task(name, work, Stage.HOOKS, ends_stage=False, parks=False),)

    def crds(self) -> tuple[StageTask, ...]:
        """Return the task that applies the package's custom resource definitions, and waits until they are established. It runs
        in a lane of its own.
        """
        return (self._task("EnsureCRDs", ensure_crds, Stage.CRDS, ends_stage=False),)

    def reconciliation(self) -> tuple[StageTask, ...]:
        """Return the tasks that configure and run a loaded version."""
        steps = self._steps(Operation.RECONCILIATION)
        return (
            self._task("Configure", configure, Stage.CONFIGURED, steps),
            self._task("AwaitCRDs", await_crds, Stage.CRDS, steps),
            self._task("Startup", startup, Stage.HOOKS, steps),
            self._task("EnsureWebhooks", ensure_webhooks, Stage.WEBHOOKS, steps),
            self._task("Run", run_global if is_global(self.instance.id) else run, Stage.APPLIED, steps),
            self._task("WaitReady", await_ready, Stage.SCALED, steps),
        )

    def disable(self, *, keep: bool) -> tuple[StageTask, ...]:
        """Return the task that stops a loaded version. If ``keep`` is true, the release is kept; otherwise it is
        uninstalled.
        """
        work, steps = pause if keep else disable_and_uninstall, self._steps(Operation.DISABLE)
        return (self._task("Disable", work, Stage.REQUIREMENTS, steps, ends_stage=False, parks=False),)

    def vote(self) -> tuple[StageTask, ...]:
        """Return the task that runs the enabled script again."""
        return (self._task("EnabledScript", ask_enabled_script, Stage.REQUIREMENTS, ends_stage=False, parks=False),)

    def removal(self) -> tuple[StageTask, ...]:
        """Return the tasks that remove the package completely; if the package is moved to another daemon, the tasks remove it
        from this daemon only.
        """
        steps = self._steps(Operation.REMOVAL)
        if self.instance.removal.moved:
            return (self._task("Leave", leave, None, steps), self._task("Undeploy", undeploy, None, steps))
        return (
            self._task("Uninstall", uninstall, None, steps),
            self._task("Purge", purge, None, steps),
            self._task("Undeploy", undeploy, None, steps),
        )

    def _steps(self, operation: Operation) -> Steps:
        return Steps(self.tools.journal, self.instance.id.name, operation)

    def _task(
        self,
        name: str,
        work: Work,
        stage: Stage | None,
        steps: Steps | None = None,
        *,
        ends_stage: bool = True,
        parks: bool = True,
    ) -> StageTask:
        host = ScopedHost(self.host, self.scope)
        return StageTask(name, stage, ends_stage, work, self.instance, self.tools, host, parks, steps)
