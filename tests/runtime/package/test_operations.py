"""The operations of a package: the effects of the beginning and of the end of each operation."""

from dataclasses import replace

import pytest

from tests.runtime.package.test_machine import (
    APP,
    IDLE,
    NAME,
    NOW,
    PLAIN,
    SUSPENDED,
    WITH_CRDS,
    after,
    effects,
    installed,
    loaded,
    offer,
    operations,
    package,
)
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.package.effects import (
    Attempt,
    BeginUpdate,
    Cancel,
    EnqueueCrds,
    EnqueueDisable,
    EnqueueReconciliation,
    EnqueueRemoval,
    EnqueueSuspend,
    EnqueueUpdate,
    Log,
    Offer,
    Phase,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DeletionChanged,
    DisableDone,
    DisableStarted,
    ReconciliationStarted,
    RemovalAccountChanged,
    RemovalDone,
    RemovalStarted,
    RunDone,
    RunOrdered,
    SkipDeleteHooks,
    StoredLoaded,
    SuspendStarted,
    UpdateDone,
    UpdateStarted,
    ValuesChanged,
)
from wharfinger.runtime.package.findings import PackageRead
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.scheduler.events import Completed, Failed, NodeRemoved, Rescheduled
from wharfinger.runtime.status import transitions as statuses


def test_an_update_is_enqueued_and_completed() -> None:
    scope = WorkScope("update")
    interrupted = Tell(Failed(NAME, 0))
    assert effects(package(), UpdateStarted(scope, 1)) == (
        Attempt(Phase.CRDS, begins=False),
        interrupted,
        EnqueueUpdate(scope),
    )
    module = installed(package(identity=ModuleId("web")))
    assert effects(module, UpdateStarted(scope, 1)) == (
        Attempt(Phase.LOAD, begins=True),
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.CRDS, begins=True),
        Tell(Failed("web", 0)),
        EnqueueUpdate(scope),
    )
    known = after(package(PackageRead(WITH_CRDS, ())), UpdateDone())
    assert (known.files.loaded_once, known.crds.established) == (True, None)
    assert effects(package(PackageRead(WITH_CRDS, ())), UpdateDone()) == (
        Simple.UPDATE_COMPLETE,
        Attempt(Phase.LOAD, begins=False),
        Attempt(Phase.CRDS, begins=False),
        offer(WITH_CRDS, fresh=True),
        Simple.ASK_PROVISIONAL,
        Simple.SEE_OTHERS,
    )
    with pytest.raises(AssertionError, match="no definition is loaded"):
        step(package(), UpdateDone(), IDLE)


def test_a_reconciliation_is_enqueued_and_completed() -> None:
    scope = WorkScope("reconciliation")
    known = after(after(loaded(), DisableStarted("gone", True, WorkScope("disable"), False)), RunOrdered(7, "why"))
    assert known.node.disabling == ("gone", True)
    assert effects(known, ReconciliationStarted(7, scope)) == (EnqueueReconciliation(scope, 7),)
    assert after(known, ReconciliationStarted(7, scope)).node.disabling is None
    assert effects(loaded(), ReconciliationStarted(7, None), SUSPENDED) == (Tell(Failed(NAME, 7)),)
    assert effects(installed(loaded()), ReconciliationStarted(7, None), SUSPENDED) == (Tell(Completed(NAME, 7)),)
    assert effects(installed(loaded()), ReconciliationStarted(7, None)) == (Tell(Failed(NAME, 7)),)
    assert effects(loaded(), RunDone(7)) == (Simple.RUN_COMPLETE, Tell(Completed(NAME, 7)))
    dirty = after(loaded(), ValuesChanged("hooks/a.sh"), operations(applying=True))
    assert dirty.applied.dirty
    again = Tell(Rescheduled(NAME, "HookValuesChanged"))
    assert effects(dirty, RunDone(7)) == (Simple.RUN_COMPLETE, Tell(Completed(NAME, 7)), again)
    assert not after(dirty, RunDone(7)).applied.dirty


def test_a_disable_cancels_crds_and_is_completed() -> None:
    scope, crds = WorkScope("disable"), WorkScope("crds")
    known = after(loaded(WITH_CRDS), CrdsStarted(crds))
    assert effects(known, DisableStarted("gone", True, scope, updating=True)) == (
        Cancel(crds, "disabled"),
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.LOAD, begins=False),
        EnqueueDisable(scope, keep=False),
        BeginUpdate(1),
    )
    assert Log("being disabled: gone") in step(known, DisableStarted("gone", True, scope, updating=True), IDLE)[1]
    assert EnqueueDisable(scope, keep=True) == effects(loaded(), DisableStarted("gone", False, scope, False))[-1]
    known = after(known, DisableStarted("gone", True, scope, updating=False))
    assert (known.node.disabling, known.crds.scope) == (("gone", True), None)
    assert after(known, DisableDone()).node.disabling is None
    assert effects(known, DisableDone()) == (Simple.RESTATE,)


def test_a_suspension_suspends_the_release_and_retains_a_disable() -> None:
    scope = WorkScope("suspension")
    disabling = after(loaded(), DisableStarted("gone", True, WorkScope("disable"), updating=False))
    known = after(disabling, SuspendStarted(scope), SUSPENDED)
    assert (known.node.disabling, known.node.missed_disable) == (None, ("gone", True))
    assert effects(loaded(), SuspendStarted(scope), SUSPENDED) == (
        Simple.REST_RELEASE,
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.LOAD, begins=False),
        Tell(Failed(NAME, 0)),
        EnqueueSuspend(scope),
    )
    assert Log("suspended") in step(loaded(), SuspendStarted(scope), SUSPENDED)[1]
    assert Tell(Completed(NAME, 0)) in effects(installed(loaded()), SuspendStarted(scope), SUSPENDED)
    assert Simple.REST_RELEASE not in effects(
        package(identity=AppId("prod", "a" * 60)), SuspendStarted(scope), SUSPENDED
    )
    stored = Offer(PLAIN, fresh=False, stored=True, established=())
    assert effects(package(PackageRead(PLAIN, ())), StoredLoaded(), SUSPENDED) == (Simple.NOTIFY, stored)
    assert effects(package(), StoredLoaded(), SUSPENDED) == (Simple.NOTIFY,)


def test_a_removal_removes_the_node_and_is_enqueued() -> None:
    scope = WorkScope("removal")
    known, done = step(loaded(), RemovalStarted(scope, None, DeletionPolicy.ORPHAN, disowned=True), IDLE)
    ended = (Attempt(Phase.CRDS, begins=False), Attempt(Phase.LOAD, begins=False))
    assert done == (*ended, Tell(NodeRemoved(NAME)), EnqueueRemoval(scope))
    assert (known.removal.deletion, known.removal.disowned) == (DeletionPolicy.ORPHAN, True)
    assert known.status.removal is not None
    assert after(known, SkipDeleteHooks()).removal.skip_delete_hooks
    assert after(known, DeletionChanged(DeletionPolicy.DELETE_ALL)).removal.deletion is DeletionPolicy.DELETE_ALL
    assert after(known, RemovalAccountChanged("deployer")).desired.account == "deployer"
    for event in (SkipDeleteHooks(), DeletionChanged(DeletionPolicy.DELETE), RemovalAccountChanged("deployer")):
        assert effects(known, event) == (Simple.RESTART_REMOVAL,)
    assert effects(known, RemovalDone()) == (Simple.CLEAN,)


def test_a_moved_package_stays_a_node_and_is_not_shown_as_removed() -> None:
    scope, crds = WorkScope("removal"), WorkScope("crds")
    start = RemovalStarted(scope, None, None, disowned=False, moved=True)
    known, done = step(after(loaded(WITH_CRDS), CrdsStarted(crds)), start, IDLE)
    ended = (Attempt(Phase.CRDS, begins=False), Attempt(Phase.LOAD, begins=False))
    log, *others = done
    assert log == Log("moved to another daemon")
    assert tuple(others) == (Cancel(crds, "moved to another daemon"), *ended, EnqueueRemoval(scope))
    assert (known.removal.moved, known.status.removal, known.crds.scope) == (True, None, None)


def test_crds_are_ensured_in_their_own_scope() -> None:
    crds = WorkScope("crds")
    assert effects(loaded(WITH_CRDS), CrdsStarted(crds)) == (Attempt(Phase.CRDS, begins=True), EnqueueCrds(crds))
    assert after(loaded(WITH_CRDS), CrdsStarted(crds)).crds.scope is crds


def test_settings_of_a_removal_are_used_only_if_none_were_adopted() -> None:
    given = replace(NO_SETTINGS, secrets=("x",))
    start = RemovalStarted(WorkScope("removal"), given, None, disowned=False)
    assert after(loaded(), start).desired.settings is NO_SETTINGS
    assert after(Package(APP, statuses.fresh(1, NOW)), start).desired.settings is given
