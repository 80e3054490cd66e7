"""The runner of hooks as child processes: it writes the contract's files, runs the hook, and reads its results.

The hook gets a constructed environment (:mod:`wharfinger.hooks.containment.hook_environment`), the variables that name the
contract's files, a home in the folder of its run, its working folder, /dev/null as stdin, and a time limit. Its output becomes
log lines and records while it runs (spec hook-protocol §1.3, §1.6, §3). All other containment is in
:mod:`wharfinger.hooks.containment.containment`. The folder of the run is removed, whether the run succeeds, fails or is
cancelled. If the run has a user of its own, the files of this user in public folders and its objects in the kernel are removed
as well.

Results are also read after a failed run, because the hook may have written object patches that report its failure (spec/runtime
§7.3). If a result file cannot be read after a failed run, this only causes a line in the log, because the failure itself
matters more. After a successful run, it causes a HookError, and the run has no result.
"""

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.config.bindings import HookPool
from wharfinger.hooks.containment.cluster_access import ClusterAccess
from wharfinger.hooks.containment.contained_run import Cell, open_cell
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.containment.hook_environment import HOME, KUBECONFIG, hook_environment
from wharfinger.hooks.containment.hook_users import allow_traversal, remove_remains_of
from wharfinger.hooks.containment.spare_folders import SpareFolders
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.log_lines import LogLines, last_words
from wharfinger.hooks.running.log_records import RecordBuffer
from wharfinger.hooks.running.pod_files import pack, unpack
from wharfinger.hooks.running.results import (
    CONFIG_VALUES_PATCH,
    METRICS,
    OBJECT_PATCHES,
    VALUES_PATCH,
    read_metrics,
    read_object_patches,
    read_values_patch,
)
from wharfinger.hooks.running.run_folder import RunFolder, fill_run_folder, name_run_folder
from wharfinger.hooks.running.runner import HookOutcome, HookRun, trace_variables
from wharfinger.hooks.shell_library import missing_library_advice
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.pools.persistent.programs import PersistentPrograms, PersistentRun
from wharfinger.pools.pods.pod_run import PodRun, PodRunError, PodRuns
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Outcome, Sinks
from wharfinger.process.environment import NO_BYTECODE
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

MAX_LOG_CHARS: Final = 1024 * 1024
REMOVE_S: Final = 10.0
"""The time for which a run waits until its folder is removed; a longer removal continues in the background."""
REMOVE_CANCELLED_S: Final = 0.2
"""The time for which a cancelled run waits for the removal of its folder. This time is short, because the work after the run
must begin within a second.
"""
_MAX_FILE_WORKERS: Final = 8


@dataclass(frozen=True, slots=True)
class _Results:
    object_patches: tuple[JsonValue, ...]
    metrics: tuple[JsonValue, ...]
    values: tuple[JsonValue, ...]
    config_values: tuple[JsonValue, ...]
    answers: Mapping[str, bytes]
    faults: tuple[HookError, ...]


class ProcessHookRunner:
    """A HookRunner that runs hooks as child processes, or in pods. The caller limits how many hooks run at the same time."""

    def __init__(
        self,
        scratch: Path,
        limits: Limits,
        ledger: ProcessLedger | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        cluster: ClusterAccess | None = None,
        containment: Containment = NO_CONTAINMENT,
        warm: WarmStarts | None = None,
        persistent: PersistentPrograms | None = None,
        pods: PodRuns | None = None,
    ) -> None:
        """Make the folders of runs in ``scratch``. ``cluster`` is the cluster that hooks may talk to, or None.

        ``warm`` starts Python hooks in interpreters that run already. ``persistent`` keeps the process of a hook running if the
        hook requests this. Without them, each run is a new process. ``pods`` runs hooks in pods; without it, a hook that asks for
        a pod fails.

        ``environment`` has the variables that every hook gets; by default, these are the allowed variables of this process. A
        variable in it that names a cluster or a home overrides the variable of the run.
        """
        self._scratch = scratch
        self._containment = containment
        self._limits = containment.limits(limits)
        self._ledger = ledger
        given = hook_environment(os.environ).variables if environment is None else environment
        self._environment = {**given, **NO_BYTECODE}
        self._warm = warm
        self._persistent = persistent
        self._pods = pods
        self._cluster = cluster if KUBECONFIG not in given else None
        self._spares = SpareFolders(scratch)
        self._file_workers = trio.CapacityLimiter(_MAX_FILE_WORKERS)

    async def run(self, run: HookRun) -> HookOutcome:
        """Run one hook to its end; a cancellation ends all processes of the hook before this returns. The folder of the run is
        removed, if necessary in the background.

        Raises HookError if the hook could not be started, or if it succeeded and left results that cannot be read.
        """
        async with open_cell(self._containment, run.name) as cell:
            return await self._run(run, cell)

    async def _kubeconfig(self, run: HookRun) -> bytes:
        if self._cluster is None:
            return b""
        try:
            with trio.fail_after(self._limits.wall_s):
                return await self._cluster.kubeconfig(run.name, credentials=run.credentials, account=run.account)
        except trio.TooSlowError as error:
            why = (
                f"the credentials for its kubeconfig were not available within {self._limits.wall_s:g} s; "
                "check whether the exec plugin of the daemon's kubeconfig hangs"
            )
            raise HookError(run.name, why, transient=True) from error

    async def _run(self, run: HookRun, cell: Cell) -> HookOutcome:
        there = False
        kubeconfig = await self._kubeconfig(run)
        folder = name_run_folder(self._scratch, run, cell.user, has_kubeconfig=bool(kubeconfig))

        def make() -> None:
            nonlocal there
            self._make(folder, run, kubeconfig)
            there = True

        try:
            lines, records = _listening(run)
            start = trio.current_time()
            outcome = await self._execute(run, cell, folder, lines, make)
            wall_s = trio.current_time() - start
            lines.end()
            for record in records:
                record.end()
            results, there = await trio.to_thread.run_sync(
                self._take_results, folder, outcome.ok, limiter=self._file_workers
            )
        finally:
            if there:
                await self._remove(folder, cell)
        for fault in results.faults:
            lines.note(f"the hook failed, and one of its results cannot be read: {fault}")
        return replace(_outcome(outcome, results, lines), wall_s=wall_s)

    def _make(self, folder: RunFolder, run: HookRun, kubeconfig: bytes) -> None:
        """Make the folder. Blocking. Raises HookError, and leaves nothing behind in that case."""
        fill_run_folder(folder, run, self._spares, kubeconfig)
        if folder.user is not None:
            try:
                allow_traversal(self._scratch.absolute(), self._containment.state_dir or self._scratch.absolute())
            except OSError as error:
                with suppress(OSError):
                    folder.remove()
                why = f"the user that it runs as cannot be given access to the folders above its files: {error}"
                raise HookError(run.name, why, transient=True) from error

    def _take_results(self, folder: RunFolder, succeeded: bool) -> tuple[_Results, bool]:  # noqa: FBT001 - as below
        """Return the results, and whether the folder still exists.

        Usually this function removes the folder. Blocking. Raises HookError.
        """
        results = _read_results(folder, succeeded)
        return results, folder.user is not None or not folder.remove_if_plain(self._spares)

    async def _execute(
        self, run: HookRun, cell: Cell, folder: RunFolder, lines: LogLines, make: Callable[[], None]
    ) -> Outcome:
        """Start the hook, and wait until it has ended. ``make`` creates the folder of the run; it is called in the thread that
        starts the hook.
        """
        if run.worker_pool:
            return await self._in_pod(run, folder, lines, make)
        environment = {**self._base(run), **self._of_this_run(run, folder)}
        command = await cell.command((str(run.executable), *run.argv), run.cwd, environment, folder.path)
        sinks, limits = Sinks(lines.stdout.feed, lines.stderr.feed), self._limits_of(run)
        try:
            if (persistent := self._persistent_run(run, folder, command)) is not None and self._persistent is not None:
                outcome = await self._persistent.run(persistent, limits, sinks=sinks, prepare=make)
            elif self._warm is not None and run.pool is not HookPool.NONE:
                outcome = await self._warm.run(command, limits, sinks=sinks, prepare=make)
            else:
                outcome = await run_child(command, limits, sinks=sinks, ledger=self._ledger, prepare=make)
        except ProcessError as error:
            raise HookError(run.name, str(error), transient=error.transient) from error
        cell.ended(outcome)
        return outcome

    def _limits_of(self, run: HookRun) -> Limits:
        wall_s = self._limits.wall_s if run.wall_s is None else min(run.wall_s, self._limits.wall_s)
        return replace(self._limits, wall_s=wall_s)

    async def _in_pod(self, run: HookRun, folder: RunFolder, lines: LogLines, make: Callable[[], None]) -> Outcome:
        """Run the hook in a pod of its WorkerPool; its files are copied into the pod and back."""
        if self._pods is None:
            why = f"the hook needs WorkerPool {run.worker_pool}, but the daemon has no --worker-pools"
            raise HookError(run.name, why)

        def packed() -> PodRun:
            make()
            return pack(run, folder)

        started = await trio.to_thread.run_sync(packed, limiter=self._file_workers)
        sinks = Sinks(lines.stdout.feed, lines.stderr.feed)
        try:
            outcome, results = await self._pods.run(started, self._limits_of(run), sinks)
        except PodRunError as error:
            raise HookError(run.name, str(error), transient=error.transient) from error
        if results is not None:
            await trio.to_thread.run_sync(unpack, results, folder, limiter=self._file_workers)
        return outcome

    def _base(self, run: HookRun) -> dict[str, str]:
        """Return the variables that are equal for all runs of a hook. Without a cluster, ``KUBECONFIG`` is /dev/null, so that
        programs do not find a cluster by themselves.
        """
        access = self._cluster.variables(credentials=run.credentials) if self._cluster is not None else {}
        return {KUBECONFIG: os.devnull, **access, **self._environment, **run.environment}

    def _of_this_run(self, run: HookRun, folder: RunFolder) -> dict[str, str]:
        """Return the variables whose values differ between runs: those that name the files of the run, and HOME unless it is
        configured.
        """
        named = HOME in self._environment or HOME in run.environment
        return {**({} if named else {HOME: str(folder.path)}), **folder.variables(), **trace_variables(run)}

    def _persistent_run(self, run: HookRun, folder: RunFolder, command: Command) -> PersistentRun | None:
        """Return the run for a process that keeps running; None if the hook does not request such a process, or cannot have one.
        A hook with a user of its own or a sandbox cannot have one, because both end with the run.
        """
        if run.pool is not HookPool.PERSISTENT or command.user is not None or command.wrapper:
            return None
        return PersistentRun(
            f"{run.owner} {run.name}", replace(command, env=self._base(run)), self._of_this_run(run, folder)
        )

    async def _remove(self, folder: RunFolder, cell: Cell) -> None:
        """Remove the folder of the run, and wait for this, at most for REMOVE_S. The wait is shielded: a cancellation only
        shortens it to REMOVE_CANCELLED_S.
        """
        patience = trio.CancelScope(shield=True, deadline=trio.current_time() + REMOVE_S)
        over = trio.Event()
        async with trio.open_nursery() as removal:
            removal.start_soon(self._removed, folder, cell, patience, over)
            try:
                await over.wait()
            except trio.Cancelled:
                patience.deadline = min(patience.deadline, trio.current_time() + REMOVE_CANCELLED_S)
                raise

    async def _removed(self, folder: RunFolder, cell: Cell, patience: trio.CancelScope, over: trio.Event) -> None:
        with patience:
            try:
                # Use a thread of its own: waiting for a free thread could use up the time, and the folder would be kept.
                alone = trio.CapacityLimiter(1)
                await trio.to_thread.run_sync(_remove_all, folder, self._spares, abandon_on_cancel=True, limiter=alone)
            except OSError as error:
                log.warning("hook %s: its folder %s could not be removed: %s", folder.hook, folder.path, error)
        if patience.cancelled_caught:
            cell.processes_may_remain()
            log.warning("hook %s: its folder %s is still being removed", folder.hook, folder.path)
        over.set()


def _listening(run: HookRun) -> tuple[LogLines, tuple[RecordBuffer, ...]]:
    """Return the buffers that split the output of a run into log lines and, if the run has ``on_record``, into records."""
    if run.on_record is None:
        return LogLines(MAX_LOG_CHARS, run.on_line), ()
    stdout, stderr = RecordBuffer("stdout", run.on_record), RecordBuffer("stderr", run.on_record)
    return LogLines(MAX_LOG_CHARS, run.on_line, also_stdout=stdout.line, also_stderr=stderr.line), (stdout, stderr)


def _remove_all(folder: RunFolder, spares: SpareFolders) -> None:
    """Remove everything that the run left. Blocking. Raises OSError if the folder cannot be removed."""
    if folder.user is not None:
        remove_remains_of(folder.user.uid)
    folder.remove(spares)


def _read_results(folder: RunFolder, succeeded: bool) -> _Results:  # noqa: FBT001 - one bit of the outcome
    """Read the files of the run. Blocking. Raises HookError; after a failed run, errors are returned as ``faults`` instead."""
    faults: list[HookError] = []

    def read(file: str, reader: Callable[[bytes], tuple[JsonValue, ...]]) -> tuple[JsonValue, ...]:
        try:
            return reader(folder.read(file))
        except HookError as error:
            if succeeded:
                raise
            faults.append(error)
            return ()

    hook = folder.hook
    return _Results(
        object_patches=read(OBJECT_PATCHES, lambda data: read_object_patches(data, hook=hook)),
        metrics=read(METRICS, lambda data: read_metrics(data, hook=hook)),
        values=read(VALUES_PATCH, lambda data: read_values_patch(data, hook=hook, file=VALUES_PATCH)),
        config_values=read(
            CONFIG_VALUES_PATCH, lambda data: read_values_patch(data, hook=hook, file=CONFIG_VALUES_PATCH)
        ),
        answers={variable: folder.read(variable) for variable in folder.answers if succeeded},
        faults=tuple(faults),
    )


def _outcome(outcome: Outcome, results: _Results, lines: LogLines) -> HookOutcome:
    return HookOutcome(
        succeeded=outcome.ok,
        exit_description=_describe(outcome),
        log_lines=lines.kept(),
        values_patch=results.values,
        config_values_patch=results.config_values,
        object_patches=results.object_patches,
        metrics=results.metrics,
        user_s=outcome.usage.user_s,
        system_s=outcome.usage.system_s,
        max_rss_bytes=outcome.usage.max_rss_bytes,
        answers=results.answers,
        ending=outcome.describe(),
    )


def _describe(outcome: Outcome) -> str:
    """Describe how the hook ended and, after a failure, its last output on stderr."""
    said = last_words(outcome.stderr)
    return (
        outcome.describe() if outcome.ok or not said else f"{outcome.describe()}: {said}{missing_library_advice(said)}"
    )
