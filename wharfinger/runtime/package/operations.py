"""The effects of the beginning and the end of each operation of a package. Pure.

This module is a part of the state machine in :mod:`~wharfinger.runtime.package.machine`. The lifecycle store decides whether an
operation may begin.
"""

from typing import assert_never

from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.effects import (
    Attempt,
    BeginDisable,
    BeginUpdate,
    Cancel,
    Effect,
    EnqueueDisable,
    EnqueueReconciliation,
    EnqueueRemoval,
    EnqueueSuspend,
    EnqueueUpdate,
    Log,
    Phase,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    DisableDone,
    DisableStarted,
    ReconciliationStarted,
    RemovalStarted,
    RunDone,
    StoredLoaded,
    SuspendStarted,
    UpdateDone,
    UpdateStarted,
)
from wharfinger.runtime.package.facts import (
    CrdsEnded,
    DisableBegun,
    DisableEnded,
    DisableMissed,
    LoadCompleted,
    ReconciliationBegun,
    RemovalBegun,
    ScriptDone,
    SettingsGiven,
    SuspendBegun,
    UpdateBegun,
)
from wharfinger.runtime.package.findings import ValuesRead
from wharfinger.runtime.package.offers import offer
from wharfinger.runtime.package.reports import with_status
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import ModuleId, has_release, is_global
from wharfinger.runtime.scheduler.events import Completed, Failed, NodeRemoved, Rescheduled
from wharfinger.runtime.status import transitions as statuses


def updated(package: Package, event: UpdateStarted | UpdateDone, around: Around) -> Next:
    """Return the package and the effects after the beginning or the end of an update."""
    match event:
        case UpdateStarted(scope, generation):
            is_module, is_plain = isinstance(package.id, ModuleId), not is_global(package.id)
            loads = (Attempt(Phase.LOAD, begins=True),) if is_module and is_plain else ()
            # After a restart, other packages wait for the first attempt to load this package, because they may use its kinds.
            waited_for = is_module and package.status.installed_since is not None and not package.files.loaded_once
            tries = (Attempt(Phase.CRDS, begins=True),) if waited_for else ()
            if (
                package.vote.voting is not None
            ):  # the vote is interrupted: Load runs the script, and a run is ordered at the end of Load
                package = applied(package, ScriptDone())
            package, ended = _without_crds(applied(package, UpdateBegun(around.now)), "update started")
            # Other packages do not wait for the interrupted run.
            interrupted = Tell(Failed(package.id.name, package.node.run))
            status = statuses.update_started(package.status, generation, around.now, version=package.desired.version)
            return with_status(package, status), (*loads, *ended, *tries, interrupted, EnqueueUpdate(scope))
        case UpdateDone():
            package, ended = _without_crds(applied(package, LoadCompleted()), "loaded anew")
            package, offered = offer(package)
            if not offered:
                raise AssertionError(f"{package.id}: Load succeeded, but no definition is loaded")
            completed = (Simple.UPDATE_COMPLETE, Attempt(Phase.LOAD, begins=False))
            return package, (*completed, *ended, *offered, Simple.ASK_PROVISIONAL, Simple.SEE_OTHERS)
        case _:
            assert_never(event)


def reconciled(package: Package, event: ReconciliationStarted | RunDone, around: Around) -> Next:
    """Return the package and the effects after the beginning of a reconciliation, or after its task Run has ended."""
    name = package.id.name
    match event:
        case ReconciliationStarted(run, scope):
            package = applied(package, ReconciliationBegun())
            if scope is not None:
                return package, (EnqueueReconciliation(scope, run),)
            # The package is suspended or being removed, so nothing runs. If it is installed, it is still present for its
            # dependents.
            there = package.status.installed_since is not None and around.suspended
            return package, (Tell(Completed(name, run) if there else Failed(name, run)),)
        case RunDone(run):
            ran = (Simple.ROUND_RAN,) if is_global(package.id) else ()
            effects = (Simple.RUN_COMPLETE, Tell(Completed(name, run)), *ran)
            if not package.applied.dirty:
                return package, effects
            return applied(package, ValuesRead()), (*effects, Tell(Rescheduled(name, "HookValuesChanged")))
        case _:
            assert_never(event)


def ensure_crds(package: Package, around: Around) -> tuple[Effect, ...]:
    """Return the effects that ensure the CRDs of a package that is on. The CRDs are ensured even if packages of a lower order
    have not run yet, and other packages wait until the first attempt to ensure them has ended.

    Return no effects if the CRDs are already established or being ensured, or if the package is suspended or being removed.
    Also return no effects while another version is being loaded; the CRDs of that version are ensured after the load.
    """
    scope = package.crds.scope
    under_way = scope is not None and not scope.cancelled
    if package.crds.established is not None or under_way or around.suspended or around.loading or around.removing:
        return ()
    return (Simple.CRDS,)


def _without_crds(package: Package, cause: str) -> Next:
    ended = Attempt(Phase.CRDS, begins=False)
    scope = package.crds.scope
    if scope is None:
        return package, (ended,)
    return applied(package, CrdsEnded()), (Cancel(scope, cause), ended)


def disable_ordered(package: Package, reason: str, around: Around, *, uninstall: bool) -> Next:
    """Begin a Disable; if it cannot begin now, record it as missed."""
    unread = package.files.definition is None and around.loading
    if around.suspended or unread:
        # Nothing is deleted now. After the next update, which resumes the package or loads its hooks, the scheduler's decision
        # determines whether the missed Disable is carried out.
        return applied(package, DisableMissed(reason, uninstall)), ()
    return package, (BeginDisable(reason, uninstall),)


def disabled(package: Package, event: DisableStarted | DisableDone, around: Around) -> Next:
    """Return the package and the effects after the beginning or the end of a Disable."""
    match event:
        case DisableStarted(reason, uninstall, scope, updating):
            package, ended = _without_crds(applied(package, DisableBegun(reason, uninstall)), "disabled")
            package = with_status(package, statuses.stopped(package.status, around.now))
            return package, (
                Log(f"being disabled: {reason}"),
                *ended,
                Attempt(Phase.LOAD, begins=False),
                EnqueueDisable(scope, keep=not uninstall),
                *((BeginUpdate(package.status.generation),) if updating else ()),
            )
        case DisableDone():
            return applied(package, DisableEnded()), (Simple.RESTATE,)
        case _:
            assert_never(event)


def suspended(package: Package, event: SuspendStarted | StoredLoaded) -> Next:
    """Return the package and the effects after its suspension has begun, or after the stored version of a suspended package was
    loaded.
    """
    match event:
        case SuspendStarted(scope):
            package, ended = _without_crds(applied(package, SuspendBegun()), "suspended")
            # An installed package is still present for its dependents, even if its run was interrupted.
            run, there = package.node.run, package.status.installed_since is not None
            return package, (
                Log("suspended"),
                *((Simple.REST_RELEASE,) if has_release(package.id) else ()),
                *ended,
                Attempt(Phase.LOAD, begins=False),
                Tell(Completed(package.id.name, run) if there else Failed(package.id.name, run)),
                EnqueueSuspend(scope),
            )
        case StoredLoaded():
            package, offered = offer(package, stored=True)
            return package, (Simple.NOTIFY, *offered)
        case _:
            assert_never(event)


def removed(package: Package, event: RemovalStarted, around: Around) -> Next:
    """Return the package and the effects after the beginning of a removal."""
    if (
        package.desired.source is None and event.settings is not None
    ):  # this process has not adopted a desired state of the package
        package = applied(package, SettingsGiven(event.settings))
    deletion = event.deletion or package.desired.directives.release_policy.deletion
    cause = "moved to another daemon" if event.moved else "removal started"
    package, ended = _without_crds(applied(package, RemovalBegun(deletion, event.disowned, event.moved)), cause)
    if event.moved:
        # The node stays until the package is known as a package of another shard, so that its dependents stay on.
        return package, (Log(cause), *ended, Attempt(Phase.LOAD, begins=False), EnqueueRemoval(event.scope))
    status = statuses.removing(package.status, "Removing", "the release is being uninstalled", around.now)
    return with_status(package, status), (
        *ended,
        Attempt(Phase.LOAD, begins=False),
        Tell(NodeRemoved(package.id.name)),
        EnqueueRemoval(event.scope),
    )
